import { AdviseError, messageOf } from '../base/errors.ts';
import type { AnalyseArtifact, AnalysisMessage, AnalysisRequest } from './analysis-protocol.ts';

/**
 * The analysis process: reads foreign files, so it has no token, no store and its own memory limit. It ends when its parent does.
 * Argument: address of the analyser module.
 */
const controller = new AbortController();
process.on('disconnect', () => process.exit(1));

function send(message: AnalysisMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve();
    process.send(message, () => resolve());
  });
}

async function analyse(request: AnalysisRequest): Promise<void> {
  try {
    await send({ type: 'started' });
    const module = (await import(process.argv[2]!)) as { analyseArtifact: AnalyseArtifact };
    let lastSent = 0;
    const report = await module.analyseArtifact(request, {
      signal: controller.signal,
      onProgress: (progress) => {
        if (Date.now() - lastSent < 200) return;
        lastSent = Date.now();
        void send({ type: 'progress', progress });
      },
    });
    await send({ type: 'report', report });
  } catch (error) {
    if (error instanceof AdviseError || (error instanceof Error && error.name === 'AdviseError')) {
      const { code, message, hint } = error as AdviseError;
      await send({ type: 'refused', code, message, hint });
    } else {
      await send({ type: 'defect', message: messageOf(error), stack: error instanceof Error ? (error.stack ?? '') : '' });
    }
  }
  // Stays until the parent has read the message and ends it.
}

process.once('message', (request) => void analyse(request as AnalysisRequest));
