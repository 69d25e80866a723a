import { type DemoOptions, readOptions, USAGE, UsageError } from './options.ts';

const UNUSABLE = 2;

/** One line, whatever was thrown. */
function say(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`demo: ${text}\n`);
}

function options(): DemoOptions | null {
  try {
    const read = readOptions(process.argv.slice(2), process.env);
    if (read === null) process.stdout.write(`${USAGE}\n`);
    return read;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(error);
    process.exitCode = UNUSABLE;
    return null;
  }
}

async function run(asked: DemoOptions): Promise<void> {
  // Loaded only now, so that a wrong command line is answered at once.
  const { startDemo } = await import('./demo.ts');
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort(new Error('stopped')));
  const terminal = {
    print: (text: string) => void process.stdout.write(`${text}\n`),
    progress: (text: string) => void process.stderr.write(`demo: ${text}\n`),
  };
  const demo = await startDemo(asked, terminal, stop.signal);
  if (!asked.once) {
    terminal.progress('serving the page; Ctrl-C ends it');
    await stopped;
  }
  await demo.close();
  if (asked.once && !demo.isClean) process.exitCode = 1;
}

const asked = options();
if (asked !== null) {
  try {
    await run(asked);
  } catch (error) {
    say(error);
    process.exitCode = UNUSABLE;
  }
  // Nothing of the demo is left; idle connections must not hold the process.
  process.stdout.write('', () => process.exit());
}
