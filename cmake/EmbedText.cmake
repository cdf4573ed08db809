# cmake -DOUTPUT=file.cpp -DFILES=a.cuh,b.cu -P EmbedText.cmake writes the files'
# text as tessera::cuda::getEmbeddedFiles.
string(REPLACE "," ";" files "${FILES}")
set(text "// Written by EmbedText.cmake.\n#include \"Compiler/Targets/CUDA/NVRTC.h\"\n")
string(APPEND text "static const tessera::cuda::EmbeddedFile files[] = {\n")
foreach(file ${files})
  file(READ "${file}" content)
  cmake_path(GET file FILENAME name)
  string(APPEND text "{\"${name}\", R\"embedded(${content})embedded\"},\n")
endforeach()
string(APPEND text "};\nstd::span<const tessera::cuda::EmbeddedFile>\n"
  "tessera::cuda::getEmbeddedFiles() { return files; }\n")
file(WRITE "${OUTPUT}" "${text}")
