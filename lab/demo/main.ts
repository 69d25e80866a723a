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

/** npm and its children each pass a Ctrl-C on: what follows within this time is the same one. */
const SAME_SIGNAL_MS = 1_000;

/** The first signal closes everything in order, a later one ends at once. */
function stopOnSignal(stop: AbortController): void {
  let first = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (first > 0 && Date.now() - first > SAME_SIGNAL_MS) process.exit(130);
      if (first > 0) return;
      first = Date.now();
      stop.abort(new Error('stopped'));
    });
  }
}

async function run(asked: DemoOptions): Promise<void> {
  // Loaded only now, so that a wrong command line is answered at once.
  const { startDemo } = await import('./demo.ts');
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  stopOnSignal(stop);
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
