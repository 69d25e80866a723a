/** GitHub's own words for bodies that do not fit the description (texts as quoted in dorny/test-reporter#194, qiniu/reviewbot#258; rest [recall]). */

function at(body: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .filter(Boolean)
    .reduce<unknown>(
      (node, part) => (typeof node === 'object' && node !== null ? (node as { [key: string]: unknown })[part] : undefined),
      body,
    );
}

/** A fault (`/pointer what is wrong`) as GitHub words it, where its wording is known. */
export function githubWording(fault: string, body: unknown): string {
  const space = fault.indexOf(' ');
  const value = at(body, fault.slice(0, space));
  const what = fault.slice(space + 1);
  const items = /^must NOT have more than (\d+) items$/.exec(what)?.[1];
  if (items !== undefined && Array.isArray(value)) return `No more than ${items} items are allowed; ${value.length} were supplied.`;
  const characters = /^must NOT have more than (\d+) characters$/.exec(what)?.[1];
  if (characters !== undefined) return `Only ${characters} characters are allowed; ${[...String(value)].length} were supplied.`;
  const missing = /^must have required property '(\w+)'$/.exec(what)?.[1];
  if (missing !== undefined) return `"${missing}" wasn't supplied.`;
  return `For '${fault.slice(0, space)}', ${what}.`;
}
