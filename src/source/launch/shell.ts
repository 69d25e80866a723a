/** A variable that a script gives to the programs it starts. Offsets are those of the script's text. */
export interface Assignment {
  readonly name: string;
  /** The value without its quotes; `$X` and `$(…)` stay as written. */
  readonly value: string;
  readonly start: number;
  readonly end: number;
  /** Holds only where the caller has not set the variable, as in `${X:-1}`. */
  readonly isDefault: boolean;
  /** The condition around it speaks of debugging. */
  readonly isDebug: boolean;
}

interface Word {
  readonly text: string;
  readonly start: number;
  /** Of each character of `text`, its offset in the script; one more for the end. */
  readonly at: readonly number[];
  readonly isOperator: boolean;
}

/** Longer scripts are generated. */
const MAX_WORDS = 100_000;
const MAX_WORD = 4_000;
const MAX_ASSIGNMENTS = 2_000;

const OPERATOR = /^(?:&&|\|\||;;&|;;|;&|\|&|;|\||&|\(|\)|\n)/;
const DEBUG = /debug|调试/i;

/** Words and operators of a script. Comments are left out, quotes are taken off, lines joined by a backslash are one. */
function wordsOf(text: string, start: number, end: number): Word[] {
  const words: Word[] = [];
  let i = start;
  const heredocs: string[] = [];
  while (i < end && words.length < MAX_WORDS) {
    const c = text[i]!;
    if (c === '\\' && text[i + 1] === '\n') i += 2;
    else if (c === '\\' && text[i + 1] === '\r' && text[i + 2] === '\n') i += 3;
    else if (c === ' ' || c === '\t' || c === '\r') i++;
    else if (c === '#') i = lineEnd(text, i, end);
    else if (text.startsWith('<<', i) && text[i + 2] !== '<') {
      const match = /^<<-?\s*(["']?)([\w.-]+)\1/.exec(text.slice(i, Math.min(end, i + 120)));
      if (match) heredocs.push(match[2]!);
      i += match?.[0].length ?? 2;
    } else if (OPERATOR.test(text.slice(i, i + 3))) {
      const operator = OPERATOR.exec(text.slice(i, i + 3))![0];
      words.push({ text: operator, start: i, at: [], isOperator: true });
      i += operator.length;
      if (operator === '\n') while (heredocs.length > 0) i = afterHeredoc(text, i, end, heredocs.shift()!);
    } else {
      const word = wordAt(text, i, end);
      words.push(word);
      i = Math.max(i + 1, word.at.at(-1)!);
    }
  }
  return words;
}

function lineEnd(text: string, from: number, end: number): number {
  const at = text.indexOf('\n', from);
  return at === -1 || at > end ? end : at;
}

function afterHeredoc(text: string, from: number, end: number, marker: string): number {
  for (let i = from; i < end; ) {
    const next = lineEnd(text, i, end);
    if (text.slice(i, next).trim() === marker) return next;
    i = next + 1;
  }
  return end;
}

function wordAt(text: string, start: number, end: number): Word {
  const at: number[] = [];
  let out = '';
  let quote = '';
  let depth = 0;
  let i = start;
  const take = (offset: number): void => {
    if (out.length >= MAX_WORD) return;
    out += text[offset]!;
    at.push(offset);
  };
  for (; i < end; i++) {
    const c = text[i]!;
    if (quote !== '') {
      if (c === quote && depth === 0) quote = '';
      else take(i);
      continue;
    }
    if (c === '\\') {
      if (text[i + 1] === '\n') i += 1;
      else if (text[i + 1] === '\r' && text[i + 2] === '\n') i += 2;
      else if (i + 1 < end) take(++i);
      continue;
    }
    if (c === '"' || c === "'") {
      quote = c;
      continue;
    }
    if (c === '$' && (text[i + 1] === '(' || text[i + 1] === '{')) {
      take(i);
      take(++i);
      depth++;
      continue;
    }
    if (depth > 0) {
      if (c === ')' || c === '}') depth--;
      if (c === '\n') break;
      take(i);
      continue;
    }
    if (/[\s;&|()<>]/.test(c)) break;
    take(i);
  }
  // A lone `<` or `>` makes no word.
  const last = Math.max(i, start + 1);
  return { text: out, start, at: [...at, last], isOperator: false };
}

/** Words after which another command begins. */
const OPENERS = new Set(['then', 'do', 'else', '{', '!', 'time', 'nohup', 'exec', 'sudo', 'command', 'numactl', 'stdbuf']);
const EXPORTS = new Set(['export', 'declare', 'typeset', 'readonly', 'local']);
const CONTAINERS = new Set(['docker', 'podman', 'nerdctl', 'docker-compose']);
const LAUNCHERS = new Set(['mpirun', 'mpiexec', 'orterun', 'prterun']);

interface Branch {
  readonly isDebug: boolean;
}

/** Variables that a shell script exports, sets for one command, or hands to a container or another host. Never run. */
export function shellAssignments(text: string, start = 0, end = text.length): Assignment[] {
  const words = wordsOf(text, start, end);
  const found: Assignment[] = [];
  /** `X=1` on a line of its own reaches a program only when X is exported somewhere. */
  const plain: Assignment[] = [];
  const exported = new Set<string>();
  const branches: Branch[] = [];
  let condition: string[] | null = null;
  let sawSetA = false;
  for (let i = 0; i < words.length && found.length + plain.length < MAX_ASSIGNMENTS; ) {
    const command: Word[] = [];
    while (i < words.length && !words[i]!.isOperator) command.push(words[i++]!);
    i++;
    let rest = command;
    for (;;) {
      const head = rest[0]?.text;
      if (head === 'if' || head === 'elif') {
        if (head === 'elif') branches.pop();
        condition = [];
      } else if (head === 'then') {
        branches.push({ isDebug: DEBUG.test((condition ?? []).join(' ')) || branches.at(-1)?.isDebug === true });
        condition = null;
      } else if (head === 'else') {
        branches.pop();
        branches.push({ isDebug: branches.at(-1)?.isDebug === true });
      } else if (head === 'fi') branches.pop();
      else if (head === undefined || !OPENERS.has(head)) break;
      rest = rest.slice(1);
    }
    if (condition !== null) {
      condition.push(...rest.map((word) => word.text));
      continue;
    }
    const isDebug = branches.at(-1)?.isDebug === true;
    const own = rest.map((word) => assignmentOf(word, 0, isDebug));
    const lead = own.indexOf(null);
    const head = lead === -1 ? undefined : rest[lead]!.text;
    const before = own.slice(0, lead === -1 ? own.length : lead).filter((assignment) => assignment !== null);
    if (head === undefined) plain.push(...before);
    else found.push(...before);
    if (head === undefined) continue;
    const after = rest.slice(lead + 1);
    if (head === 'set' && after.some((word) => /^-\w*a/.test(word.text))) sawSetA = true;
    if (head === ':') for (const word of after) found.push(...defaultOf(word, isDebug));
    if (EXPORTS.has(head)) {
      const reaches = head === 'export' || after.some((word) => /^-\w*x/.test(word.text));
      for (const word of after) {
        const assignment = assignmentOf(word, 0, isDebug);
        if (assignment) (reaches ? found : plain).push(assignment);
        else if (reaches) exported.add(word.text);
      }
    }
    if (head === 'env') {
      for (let k = 0; k < after.length; k++) {
        const assignment = assignmentOf(after[k]!, 0, isDebug);
        if (assignment) found.push(assignment);
        else if (/^(-u|-C|--unset|--chdir)$/.test(after[k]!.text)) k++;
        else if (!after[k]!.text.startsWith('-')) break;
      }
    }
    if (head === 'setenv' && after.length === 2) {
      const [name, value] = after as [Word, Word];
      if (/^[A-Za-z_]\w*$/.test(name.text)) found.push(givenTo(name.text, value, 0, isDebug));
    }
    if (CONTAINERS.has(head)) found.push(...options(after, /^(?:-e|--env)$/, /^(?:--env=|-e(?=[A-Z]))/, isDebug));
    if (LAUNCHERS.has(head)) found.push(...options(after, /^-x$/, null, isDebug));
    for (const word of after) found.push(...slurmExport(word, isDebug));
  }
  for (const assignment of plain) if (sawSetA || exported.has(assignment.name)) found.push(assignment);
  return found.sort((a, b) => a.start - b.start);
}

function assignmentOf(word: Word, from: number, isDebug: boolean): Assignment | null {
  const match = /^([A-Za-z_]\w*)=/.exec(word.text.slice(from, from + 200));
  if (match === null) return null;
  return givenTo(match[1]!, word, from + match[0].length, isDebug);
}

function givenTo(name: string, word: Word, from: number, isDebug: boolean): Assignment {
  const written = word.text.slice(from);
  const fallback = /^\$\{[A-Za-z_]\w*:?[-=]([^${}]*)\}$/.exec(written);
  const skip = fallback ? written.length - 1 - fallback[1]!.length : 0;
  const value = fallback ? fallback[1]! : written;
  const start = word.at[from + skip]!;
  const last = from + skip + value.length;
  return {
    name,
    value,
    start,
    end: value === '' ? start : word.at[last - 1]! + 1,
    isDefault: fallback !== null,
    isDebug,
  };
}

/** `: "${X:=1}"` */
function defaultOf(word: Word, isDebug: boolean): Assignment[] {
  const match = /^\$\{([A-Za-z_]\w*):?=/.exec(word.text);
  return match ? [givenTo(match[1]!, word, 0, isDebug)] : [];
}

function options(words: readonly Word[], apart: RegExp, joined: RegExp | null, isDebug: boolean): Assignment[] {
  return words.flatMap((word, i) => {
    const isNext = i > 0 && apart.test(words[i - 1]!.text);
    const prefix = joined?.exec(word.text)?.[0].length;
    const from = isNext ? 0 : prefix;
    const assignment = from === undefined ? null : assignmentOf(word, from, isDebug);
    return assignment ? [assignment] : [];
  });
}

/** `srun --export=ALL,X=1,Y=2` */
function slurmExport(word: Word, isDebug: boolean): Assignment[] {
  if (!word.text.startsWith('--export=')) return [];
  const found: Assignment[] = [];
  let from = '--export='.length;
  for (const part of word.text.slice(from).split(',')) {
    const sub: Word = { ...word, text: word.text.slice(0, from + part.length) };
    const assignment = assignmentOf(sub, from, isDebug);
    if (assignment) found.push(assignment);
    from += part.length + 1;
  }
  return found;
}
