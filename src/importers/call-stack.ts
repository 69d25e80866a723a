import type { Frame } from '../model/capture.ts';

/** Folders that are never the user's code. */
const FRAMEWORK = /(^|[\\/])(site-packages|dist-packages|lib[\\/]python[\d.]+)[\\/]|^<|(^|[\\/])(torch|torch_npu|torchrun)[\\/]/;
const FRAME = /^\s*(.+?)\((\d{1,9})\): (.+?)\s*$/;

/** First frame outside Python, torch and torch_npu; stacks are written innermost first, frames divided by `;` and a line break. */
export function firstUserFrame(stack: string): Frame | null {
  for (const part of stack.split(/;(?:\r?\n|\\r\\n|\\n)/)) {
    const found = FRAME.exec(part);
    if (found === null) continue;
    const file = found[1]!;
    if (FRAMEWORK.test(file)) continue;
    return { file: file.replaceAll('\\\\', '/').slice(-300), line: Number(found[2]), func: found[3]!.slice(0, 200) };
  }
  return null;
}
