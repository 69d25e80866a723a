import { type Assignment, shellAssignments } from './shell.ts';

/** An instruction with its lines: a backslash at the end goes on, comment lines between are skipped. */
interface Instruction {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export function instructionsOf(text: string): Instruction[] {
  const found: Instruction[] = [];
  let open: { name: string; start: number } | null = null;
  let at = 0;
  for (const line of text.split('\n')) {
    const end = at + line.length;
    if (!/^\s*(#|$)/.test(line)) {
      const head: RegExpExecArray | null = open === null ? /^\s*([A-Za-z]+)\s+/.exec(line) : null;
      if (head) open = { name: head[1]!.toUpperCase(), start: at + head[0].length };
      if (open && !/\\\s*$/.test(line)) {
        found.push({ ...open, end });
        open = null;
      }
    }
    at = end + 1;
  }
  if (open) found.push({ ...open, end: text.length });
  return found;
}

/** Variables of the image: `ENV X=1 Y=2`, `ENV X 1`, and what `CMD` or `ENTRYPOINT` sets for its own command. */
export function dockerAssignments(text: string): Assignment[] {
  return instructionsOf(text).flatMap(({ name, start, end }) => {
    if (name === 'CMD' || name === 'ENTRYPOINT') return shellAssignments(text, start, end);
    if (name !== 'ENV') return [];
    const old = /^([A-Za-z_]\w*)[ \t]+([^\s=\\][^\s\\]*)[ \t]*$/.exec(text.slice(start, end));
    if (old === null) return exported(text, start, end);
    const from = end - text.slice(start, end).trimStart().length + text.slice(start, end).lastIndexOf(old[2]!);
    const value = old[2]!.replace(/^(["'])(.*)\1$/, '$2');
    const offset = from + (value === old[2] ? 0 : 1);
    return [{ name: old[1]!, value, start: offset, end: offset + value.length, isDefault: false, isDebug: false }];
  });
}

/** The same words as after `export`; comment lines between them are blanked, so that offsets stay. */
function exported(text: string, start: number, end: number): Assignment[] {
  const lead = 'export ';
  const body = text.slice(start, end).replaceAll(/^[ \t]*#.*$/gm, (line) => `${' '.repeat(Math.max(0, line.length - 1))}\\`);
  return shellAssignments(lead + body).map((found) => ({
    ...found,
    start: found.start - lead.length + start,
    end: found.end - lead.length + start,
  }));
}
