/** Passes so many different values of a label on; whatever comes later, or does not look like a name of ours, is `other`. */
export function boundedLabels(limit: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= limit || !/^[a-z][a-z0-9_-]{0,39}$/.test(value)) return 'other';
    known.add(value);
    return value;
  };
}
