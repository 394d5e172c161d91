// Searches passages, one per line of a file, by meaning: prints the best for each line of standard input.
//
//     search MODEL PASSAGES < QUESTIONS
#include <fstream>
#include <iostream>

#include <ATen/ops/div.h>
#include <ATen/ops/matmul.h>
#include <zoo/models/tasks/text_embedder.h>

std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Vectors [N, D] of length 1, so that products are cosines.
at::Tensor vectors_of(const zoo::TextEmbedder& embedder, const std::vector<std::string>& texts) {
  const at::Tensor vectors = embedder.embed(texts);
  return at::div(vectors, vectors.norm(2, /*dim=*/1, /*keepdim=*/true));
}

int main(int, char** argv) {
  const zoo::TextEmbedder embedder(argv[1]);
  std::ifstream file(argv[2]);
  const std::vector<std::string> passages = lines_of(file);
  const at::Tensor known = vectors_of(embedder, passages);
  for (const std::string& question : lines_of(std::cin)) {
    const auto [scores, best] = at::matmul(known, vectors_of(embedder, {question})[0]).max(0);
    std::cout << question << " -> " << passages.at(best.item<std::int64_t>()) << "\n";
  }
}
