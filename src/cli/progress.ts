import type { WriteStream } from 'node:tty';
import { formatBytes } from '../base/phrase.ts';
import type { Progress } from '../engine/analyse.ts';
import type { Lang } from '../model/lang.ts';

/** One line on a terminal while files are read; silent elsewhere. */
export function progressBar(stream: WriteStream, lang: Lang): { update(progress: Progress): void; done(): void } {
  let shown = false;
  let last = 0;
  return {
    update({ phase, done, total }) {
      if (!stream.isTTY || Date.now() - last < 100) return;
      last = Date.now();
      shown = true;
      const reading = lang === 'zh' ? '读取' : 'reading';
      const diagnosing = lang === 'zh' ? '诊断' : 'diagnosing';
      stream.write(`\r\u001b[2K${phase === 'read' ? `${reading} ${formatBytes(done)} / ${formatBytes(total)}` : `${diagnosing} …`}`);
    },
    done() {
      if (shown) stream.write('\r\u001b[2K');
      shown = false;
    },
  };
}
