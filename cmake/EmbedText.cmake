# cmake -DOUTPUT=file.cpp -DROOT=folder -DFILES=base/a.cuh,b.cu -P EmbedText.cmake writes
# the files' text as tessera::cuda::getEmbeddedFiles, by their names below ROOT.
string(REPLACE "," ";" files "${FILES}")
set(text "// Written by EmbedText.cmake.\n#include \"Compiler/Targets/CUDA/NVRTC.h\"\n")
string(APPEND text "static const tessera::cuda::EmbeddedFile files[] = {\n")
foreach(name ${files})
  file(READ "${ROOT}/${name}" content)
  string(APPEND text "{\"${name}\", R\"embedded(${content})embedded\"},\n")
endforeach()
string(APPEND text "};\nstd::span<const tessera::cuda::EmbeddedFile>\n"
  "tessera::cuda::getEmbeddedFiles() { return files; }\n")
file(WRITE "${OUTPUT}" "${text}")
