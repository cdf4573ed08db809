/* Runs a module of one rank on inputs of ones: run MODULE */
#include <tessera/tessera.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends with what a status says; a null one is success. */
static void check(tessera_status *status) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", tessera_status_message(status));
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2)
    return fprintf(stderr, "usage: run MODULE\n"), 2;
  tessera_context_options options = {.size = sizeof options, .world = 1};
  tessera_context *context;
  tessera_module *module;
  tessera_binding *binding;
  check(tessera_context_create(&options, &context));
  check(tessera_module_load_file(context, argv[1], &module));
  if (tessera_module_symbol_count(module))
    return fprintf(stderr, "this program binds no sizes\n"), 1;

  size_t count = tessera_module_port_count(module);
  tessera_port ports[16] = {{.size = sizeof *ports}};
  float *memory[16];
  if (count > 16)
    return fprintf(stderr, "this program takes 16 ports at most\n"), 1;
  for (size_t i = 0; i < count; ++i) {
    tessera_layout layout = {.size = sizeof layout};
    ports[i].size = sizeof ports[i];
    check(tessera_module_port(module, i, &ports[i]));
    check(tessera_module_layout(module, i, NULL, 0, &layout));
    if (ports[i].dtype != TESSERA_F32)
      return fprintf(stderr, "%s is not of f32\n", ports[i].name), 1;
    memory[i] = malloc(layout.bytes);
    for (size_t e = 0; e < layout.bytes / sizeof(float); ++e)
      memory[i][e] = 1;
  }

  check(tessera_binding_create(module, NULL, 0, (void **)memory, count,
                               &binding));
  check(tessera_binding_run(binding));
  for (size_t i = 0; i < count; ++i)
    if (ports[i].kind == TESSERA_OUTPUT)
      printf("%s%s begins with %g\n", ports[i].name, ports[i].shape_text,
             memory[i][0]);
  tessera_binding_destroy(binding);
  tessera_module_destroy(module);
  tessera_context_destroy(context);
  return 0;
}
