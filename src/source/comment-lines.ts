/** True when a `#` stands before the first mention of a word, as in shell, YAML, TOML, Dockerfile and Python comments. */
export function isInsideComment(line: string, word: string): boolean {
  const at = line.indexOf(word);
  const hash = line.search(/(^|\s)#/);
  return hash !== -1 && at !== -1 && hash < at;
}
