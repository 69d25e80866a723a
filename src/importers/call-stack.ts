import type { Frame } from '../model/capture.ts';

/** Folders that are never the user's code. */
const PYTHON_OR_TORCH = /(^|[\\/])lib[\\/]python[\d.]+[\\/](?!(?:site|dist)-packages[\\/])|^<|(^|[\\/])(torch|torch_npu|torchrun)[\\/]/;
const INSTALLED = /(^|[\\/])(?:site|dist)-packages[\\/]/;
const FRAME = /^(\S.*?)\((\d{1,9})\): (.+)$/;

/** Names of calls, installed packages and outer files kept with a frame: enough to find the line again, small enough for every line of a job. */
const MAX_CALLS = 5;
const MAX_AROUND = 2;

/**
 * First frame outside Python, torch, torch_npu and installed packages, else that of a package; stacks are written innermost first, frames divided by `;`
 * and a line break. With it: what its line calls, packages further in, and files further out, because only the repository tells
 * which of them are its own.
 */
export function firstUserFrame(stack: string): Frame | null {
  let own: Frame | null = null;
  const inner: string[] = [];
  const installed: Frame[] = [];
  const outer: Frame[] = [];
  for (const part of stack.split(/;(?:\r?\n|\\r\\n|\\n)/)) {
    const found = FRAME.exec(part.trim());
    if (found === null) continue;
    const file = found[1]!;
    const func = found[3]!.slice(0, 200);
    if (!PYTHON_OR_TORCH.test(file)) {
      const frame = { file: file.replaceAll('\\\\', '/').slice(-300), line: Number(found[2]), func, ...callsOf(inner) };
      if (INSTALLED.test(file)) {
        if (own === null && installed.length < MAX_AROUND && !installed.some((other) => packageOf(other) === packageOf(frame)))
          installed.push(frame);
      } else if (own === null) own = frame;
      else if (frame.file !== own.file && frame.file !== outer.at(-1)?.file) {
        // The outermost one is the script that was started.
        if (outer.length === MAX_AROUND) outer.pop();
        outer.push(frame);
      }
    }
    inner.push(func);
  }
  if (own === null) {
    const [first, ...others] = installed;
    return first === undefined ? null : { ...first, isInstalled: true, ...(others.length === 0 ? {} : { installed: others }) };
  }
  return { ...own, ...(installed.length === 0 ? {} : { installed }), ...(outer.length === 0 ? {} : { outer }) };
}

/** The frame a Python function is recorded as, when it is the user's. */
export function userFunction(name: string): Frame | null {
  const frame = firstUserFrame(name);
  return frame?.isInstalled === true ? null : frame;
}

function callsOf(inner: readonly string[]): Pick<Frame, 'calls'> {
  if (inner.length === 0) return {};
  return { calls: inner.slice(-MAX_CALLS).reverse() };
}

function packageOf({ file }: Frame): string {
  return file
    .replaceAll('\\', '/')
    .split(/-packages\//)
    .at(-1)!
    .split('/')[0]!;
}
