import { AdviseError, messageOf } from '../base/errors.ts';
import {
  type AnalyseArtifact,
  type AnalysisMessage,
  type AnalysisTask,
  type NamedAnswer,
  type NamedFiles,
  OUT_OF_MEMORY,
} from './analysis-protocol.ts';

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

/** Asks the parent, which has the token; it always answers. */
async function filesNamed(frames: readonly string[]): Promise<NamedFiles> {
  const answered = new Promise<NamedFiles>((resolve) => process.once('message', (answer) => resolve((answer as NamedAnswer).files)));
  await send({ type: 'named', frames });
  return answered;
}

async function work(task: AnalysisTask): Promise<void> {
  try {
    await send({ type: 'started' });
    if (task.kind === 'parts') {
      const { partsOf } = await import('./parts.ts');
      await send({ type: 'parts', answers: await partsOf(task.paths, task.share) });
      return;
    }
    if (task.kind === 'digest') {
      const { digestUpload } = await import('./digest-upload.ts');
      await digestUpload(task.request, (progress) => void send({ type: 'progress', progress }));
      await send({ type: 'digested' });
      return;
    }
    const module = (await import(process.argv[2]!)) as { analyseArtifact: AnalyseArtifact };
    let lastSent = 0;
    let phase = '';
    const report = await module.analyseArtifact(task.request, {
      signal: controller.signal,
      onNamed: filesNamed,
      onProgress: (progress) => {
        if (progress.phase === phase && Date.now() - lastSent < 200) return;
        lastSent = Date.now();
        phase = progress.phase;
        void send({ type: 'progress', progress });
      },
    });
    await send({ type: 'report', report });
  } catch (error) {
    if (error instanceof AdviseError || (error instanceof Error && error.name === 'AdviseError')) {
      const { code, told } = error as AdviseError;
      await send({ type: 'refused', code, told });
    } else if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
      // A reading thread has a heap of its own.
      await send({ type: 'refused', code: OUT_OF_MEMORY, told: new AdviseError(OUT_OF_MEMORY, error.message, '').told });
    } else {
      await send({ type: 'defect', message: messageOf(error), stack: error instanceof Error ? (error.stack ?? '') : '' });
    }
  }
  // Stays until the parent has read the message and ends it.
}

process.once('message', (task) => void work(task as AnalysisTask));
