# Finds Google's sentencepiece (processor and trainer) and makes the target zoo::sentencepiece.
find_path(SentencePiece_INCLUDE_DIR sentencepiece_processor.h)
find_library(SentencePiece_LIBRARY sentencepiece)
find_library(SentencePiece_TRAIN_LIBRARY sentencepiece_train)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SentencePiece
  REQUIRED_VARS SentencePiece_LIBRARY SentencePiece_TRAIN_LIBRARY SentencePiece_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Debian and Ubuntu have it as libsentencepiece-dev")

if(SentencePiece_FOUND AND NOT TARGET zoo::sentencepiece)
  add_library(zoo::sentencepiece INTERFACE IMPORTED)
  target_include_directories(zoo::sentencepiece SYSTEM INTERFACE ${SentencePiece_INCLUDE_DIR})
  target_link_libraries(zoo::sentencepiece INTERFACE ${SentencePiece_TRAIN_LIBRARY} ${SentencePiece_LIBRARY})
endif()
mark_as_advanced(SentencePiece_INCLUDE_DIR SentencePiece_LIBRARY SentencePiece_TRAIN_LIBRARY)
