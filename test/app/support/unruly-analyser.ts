import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { AnalyseArtifact } from '../../../src/app/analysis-protocol.ts';

/** An analysis that does what its first path says, however bad; its process id is left in the folder it may write to. */
export const analyseArtifact: AnalyseArtifact = async (request, { onNamed }) => {
  writeFileSync(join(process.cwd(), 'pid'), String(process.pid));
  switch (request.paths[0]) {
    case 'spins':
      for (;;) Math.sqrt(2);
    case 'waits':
      return new Promise(() => setInterval(() => undefined, 1000));
    case 'heap': {
      const held: unknown[] = [];
      for (let i = 0; ; i++) held.push({ i, text: `${i}`.repeat(20), more: [i, i, i] });
    }
    case 'buffers': {
      const held: Buffer[] = [];
      for (;;) {
        held.push(Buffer.alloc(1 << 20, 1));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    case 'a reading thread': {
      const grow = 'const held = []; for (;;) held.push(new Array(1000).fill({}).map(() => ({})));';
      const thread = new Worker(grow, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 20, maxYoungGenerationSizeMb: 4 } });
      return new Promise((_, reject) => thread.on('error', reject));
    }
    case 'dies':
      process.exit(3);
      break;
    case 'aborts':
      process.abort();
      break;
    case 'writes elsewhere':
      writeFileSync(join(process.cwd(), '..', 'elsewhere'), 'x');
      break;
    case 'reads elsewhere':
      throw new Error(`read: ${readFileSync(request.paths[1] ?? (await onNamed!(['/w/a.py']))[0]![0], 'utf8')}`);
    case 'starts a program': {
      const { execFileSync } = await import('node:child_process');
      execFileSync('/bin/true');
      break;
    }
    case 'asks for files':
      throw new Error(JSON.stringify(await onNamed!(['/w/a.py', 7 as unknown as string, 'x'.repeat(2_000)])));
    case 'says what it knows':
      throw new Error(JSON.stringify({ env: Object.keys(process.env).sort(), args: process.argv.slice(2), request }));
  }
  throw new Error('went on');
};
