/** Mixes integers into one 32-bit hash; the same inputs always give the same value. */
export function hash(...parts: number[]): number {
  let h = 0x9e3779b9;
  for (const part of parts) {
    h ^= part | 0;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    h ^= h >>> 16;
  }
  return h >>> 0;
}

/** Hash of a string, to name a random stream. */
export function hashText(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

/** Uniform value in [0, 1) that depends only on its arguments. */
export function uniform(...parts: number[]): number {
  return hash(...parts) / 4294967296;
}

/** Factor around 1 with about the given relative standard deviation, bounded to three of them. */
export function jitter(relative: number, ...parts: number[]): number {
  const sum = uniform(...parts, 1) + uniform(...parts, 2) + uniform(...parts, 3) - 1.5;
  return 1 + 2 * relative * sum;
}
