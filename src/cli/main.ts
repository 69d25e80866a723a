import { Command, CommanderError } from 'commander';
import { AdviseError, inOneLine, messageOf } from '../base/errors.ts';
import { VERSION } from '../engine/version.ts';
import { LANGS, type Lang } from '../model/lang.ts';
import { type AnalyzeOptions, analyze } from './analyze.ts';
import { langOf, mistakeInChinese, speakChinese } from './chinese.ts';
import { digest } from './digest.ts';
import { validateConfig } from './load-config.ts';
import { type PatchOptions, patch } from './patch.ts';
import { explainRule, listRules } from './rules.ts';
import { notKnown } from './usage.ts';

const UNUSABLE = 2;

/** Of the terminal, where `--lang` does not name one. */
const LANG = langOf(process.argv, process.env);

function lang(value: string | undefined): Lang {
  if (value === undefined) return LANG;
  const found = LANGS.find((one) => one === value);
  if (found === undefined) throw notKnown('language', value, LANGS);
  return found;
}

const ENV_FILE = ['--env <file>', 'file with variables, as `setup` writes it; those of the environment go first'] as const;

/** The environment of the process, completed from a file. */
function environment({ env: envFile }: { readonly env?: string }): NodeJS.ProcessEnv {
  if (envFile !== undefined) {
    try {
      process.loadEnvFile(envFile);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      throw new AdviseError(
        'environment',
        { en: `${envFile} cannot be read (${code})`, zh: `无法读取 ${envFile}（${code}）` },
        { en: 'Give the path of a file with NAME=value lines.', zh: '给出由 NAME=value 行组成的文件的路径。' },
      );
    }
  }
  return process.env;
}

const program = new Command('npu-advise')
  .description(
    'Reads Ascend NPU profiles of multi-card PyTorch training and says what the cards waited for, what it costs per step and what to change.',
  )
  .version(VERSION)
  .exitOverride()
  .configureOutput({ outputError: () => undefined });

program
  .command('analyze')
  .description('diagnose one job: a profile folder, zip or tar.gz; several paths are the ranks of one job; none: only --source is read')
  .argument('[path...]')
  .option(
    '--baseline <path>',
    'profile or facts.json to compare with; give it again for repeats of the same unchanged job',
    (path: string, all: string[]) => [...all, path],
    [],
  )
  .option('--source <dir>', 'repository of the training script, to place advice on its lines; by itself: what is wrong on NPUs')
  .option('--config <file>', 'npu-advisor.yml with thresholds and gate')
  .option('--format <format>', 'text, json, md, html or sarif', 'text')
  .option('--out <file>', 'write there instead of standard output')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: AnalyzeOptions) => {
    process.exitCode = await analyze(paths, options, LANG);
  });

program
  .command('patch')
  .description('all changes to the source as one unified diff: `npu-advise patch PROFILE --source . | git apply`')
  .argument('[path...]')
  .requiredOption('--source <dir>', 'repository of the training script; the paths of the diff are relative to it')
  .option(
    '--baseline <path>',
    'profile or facts.json to compare with; give it again for repeats of the same unchanged job',
    (path: string, all: string[]) => [...all, path],
    [],
  )
  .option('--config <file>', 'npu-advisor.yml with thresholds')
  .option('--out <file>', 'write there instead of standard output')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: PatchOptions) => {
    await patch(paths, options, LANG);
  });

program
  .command('digest')
  .description('keep what `analyze` needs of a profile in one small file, for runners that cannot upload gigabytes')
  .argument('<path...>')
  .requiredOption('--out <file>', 'file to write, e.g. facts.json')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: { out: string; lang?: string }) => {
    process.stdout.write(await digest(paths, options.out, lang(options.lang)));
  });

program
  .command('rules')
  .description('list the checks')
  .option('--format <format>', 'text or json', 'text')
  .option('--lang <lang>', 'en or zh')
  .action((options: { format: string; lang?: string }) => {
    process.stdout.write(listRules(options.format, lang(options.lang)));
  });

program
  .command('explain')
  .description('what a check measures, its thresholds and when not to use it')
  .argument('<rule>')
  .option('--lang <lang>', 'en or zh')
  .action(async (id: string, options: { lang?: string }) => {
    process.stdout.write(await explainRule(id, lang(options.lang)));
  });

program
  .command('config')
  .description('work with .github/npu-advisor.yml')
  .command('validate')
  .description('check a configuration file; further files are what it extends, nearest first')
  .argument('<file...>')
  .option('--format <format>', 'text, json, or github for annotations of a workflow run', 'text')
  .option('--lang <lang>', 'en or zh')
  .action(async (files: string[], options: { format: string; lang?: string }) => {
    const { out, code } = await validateConfig(files, { format: options.format, lang: lang(options.lang) });
    process.stdout.write(out);
    process.exitCode = code;
  });

program
  .command('action')
  .description('run as a step of a GitHub workflow (see action.yml and docs/actions.md)')
  .action(async () => {
    // Nothing but the action itself is to find the token.
    const env = { ...process.env };
    delete process.env.INPUT_TOKEN;
    const { runAction, describeFailure } = await import('../app/action/main.ts');
    const { workflowCommand } = await import('../render/workflow-command.ts');
    try {
      process.exitCode = await runAction(env, (text) => process.stdout.write(text));
    } catch (error) {
      process.stdout.write(
        `${workflowCommand('error', null, describeFailure(error, env.INPUT_LANG === 'zh' ? 'zh' : 'en'), 'NPU Advisor')}\n`,
      );
      process.exitCode = UNUSABLE;
    }
  });

program
  .command('history')
  .description('figures of the profiles a server keeps')
  .command('export')
  .description('write them all, oldest first; a server with the embedded store must be stopped')
  .option('--repo <repository>', 'owner/name, or its number')
  .option('--job <job>', 'name of a job in the settings; `default` without jobs')
  .option('--format <format>', 'json or csv', 'json')
  .action(async (options: { repo?: string; job?: string; format: string }) => {
    const { exportHistory } = await import('../app/history-export.ts');
    const { repo = null, job = null, format } = options;
    await exportHistory(process.env, { repository: repo, job, format }, (text) => process.stdout.write(text));
  });

program
  .command('serve')
  .description('run the GitHub App (see docs/operate.md)')
  .option(...ENV_FILE)
  .action(async (options: { env?: string }) => {
    const { serve, closeOnSignal } = await import('../app/main.ts');
    closeOnSignal(await serve(environment(options)));
  });

program
  .command('worker')
  .description('run jobs only, beside `serve`, on a shared PostgreSQL (DATABASE_URL)')
  .option(...ENV_FILE)
  .action(async (options: { env?: string }) => {
    const { work, closeOnSignal } = await import('../app/main.ts');
    closeOnSignal(await work(environment(options)));
  });

program
  .command('doctor')
  .description('check what a server needs: credentials, permissions, webhook, store, disk, memory; exit 1 when something is wrong')
  .option('--format <format>', 'text or json', 'text')
  .option('--lang <lang>', 'en or zh')
  .option(...ENV_FILE)
  .action(async (options: { format: string; lang?: string; env?: string }) => {
    const { runDoctor } = await import('../app/doctor/main.ts');
    const how = { format: options.format, lang: lang(options.lang) };
    process.exitCode = await runDoctor(environment(options), how, (text) => process.stdout.write(text));
  });

program
  .command('setup')
  .description('register the GitHub App with two clicks in a browser, and write its credentials to a file')
  .requiredOption('--url <address>', 'https address under which GitHub reaches the server, such as https://npu-advisor.example')
  .option('--org <organisation>', 'owner of the app; without it, the account that is logged in')
  .option('--name <name>', 'name of the app; names are unique on a GitHub', 'NPU Advisor')
  .option('--out <file>', 'file for the settings; the private key is written beside it', '.env')
  .option('--port <port>', 'port of the page on this machine', '3000')
  .option('--lang <lang>', 'en or zh')
  .action(async (options: { url: string; org?: string; name: string; out: string; port: string; lang?: string }) => {
    const { setUp } = await import('../app/setup/main.ts');
    const { org = null, ...given } = options;
    await setUp(process.env, { ...given, org, lang: lang(options.lang) }, (text) => process.stdout.write(text));
  });

/** Known errors are one line with what to do; anything else is a defect and shows its stack. */
function fail(error: unknown): void {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return;
    const what = LANG === 'zh' ? mistakeInChinese(error) : error.message.replace(/^error: /, '');
    const where = LANG === 'zh' ? '；见 npu-advise --help' : '; see npu-advise --help';
    process.stderr.write(`npu-advise: ${what.replaceAll(/\s+/g, ' ')}${where}\n`);
  } else if (error instanceof AdviseError) {
    process.stderr.write(`npu-advise: ${inOneLine(error, LANG)}\n`);
  } else {
    process.stderr.write(
      `npu-advise: ${LANG === 'zh' ? '意外错误：' : 'unexpected: '}${messageOf(error)}\n${error instanceof Error ? (error.stack ?? '') : ''}\n`,
    );
  }
  process.exitCode = UNUSABLE;
}

if (LANG === 'zh') speakChinese(program);

try {
  await program.parseAsync(process.argv);
} catch (error) {
  fail(error);
}
