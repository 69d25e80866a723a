import type { Command, CommanderError, Help, Option } from 'commander';
import type { Lang } from '../model/lang.ts';

/** Every sentence of the help, by the English one that stands at its command. */
export const HELP: Readonly<Record<string, string>> = {
  'Reads Ascend NPU profiles of multi-card PyTorch training and says what the cards waited for, what it costs per step and what to change.':
    '读取 PyTorch 多卡训练的 Ascend NPU profile，指出各卡在等什么、每迭代多花多少时间、怎么改。',
  'diagnose one job: a profile folder, zip or tar.gz; several paths are the ranks of one job; none: only --source is read':
    '诊断一个作业：profile 目录、zip 或 tar.gz；多个路径视为同一作业的各张卡；不给路径时只读取 --source',
  'profile or facts.json to compare with; give it again for repeats of the same unchanged job':
    '用于对比的 profile 或 facts.json；同一作业未改动的多次运行可重复给出',
  'repository of the training script, to place advice on its lines; by itself: what is wrong on NPUs':
    '训练脚本所在的仓库，用于把建议落到代码行；单独使用时检查其在 NPU 上的错误写法',
  'npu-advisor.yml with thresholds and gate': '含阈值与门禁的 npu-advisor.yml',
  'text, json, md, html or sarif': 'text、json、md、html 或 sarif',
  'write there instead of standard output': '写入该文件，不写标准输出',
  'en or zh': 'en 或 zh；未给出时按系统语言',
  'all changes to the source as one unified diff: `npu-advise patch PROFILE --source . | git apply`':
    '把对源码的全部改动输出为一个 diff：`npu-advise patch PROFILE --source . | git apply`',
  'repository of the training script; the paths of the diff are relative to it': '训练脚本所在的仓库；diff 中的路径相对于它',
  'npu-advisor.yml with thresholds': '含阈值的 npu-advisor.yml',
  'keep what `analyze` needs of a profile in one small file, for runners that cannot upload gigabytes':
    '把 `analyze` 所需的数据存入一个小文件，适合无法上传数 GB 数据的 runner',
  'file to write, e.g. facts.json': '要写入的文件，例如 facts.json',
  'list the checks': '列出全部检查项',
  'text or json': 'text 或 json',
  'what a check measures, its thresholds and when not to use it': '某个检查项检查什么、阈值多少、何时不适用',
  'work with .github/npu-advisor.yml': '处理 .github/npu-advisor.yml',
  'check a configuration file; further files are what it extends, nearest first': '检查配置文件；其后的文件为它所继承的配置，最近的在前',
  'text, json, or github for annotations of a workflow run': 'text、json，或 github（输出工作流运行的注解）',
  'run as a step of a GitHub workflow (see action.yml and docs/actions.md)':
    '作为 GitHub 工作流的一个步骤运行（见 action.yml 与 docs/actions.zh.md）',
  'figures of the profiles a server keeps': '服务器所保存 profile 的数据',
  'write them all, oldest first; a server with the embedded store must be stopped': '全部输出，最早的在前；使用内置存储的服务器须先停止',
  'owner/name, or its number': 'owner/name，或仓库编号',
  'name of a job in the settings; `default` without jobs': '配置中的作业名；未划分作业时为 `default`',
  'json or csv': 'json 或 csv',
  'run the GitHub App (see docs/operate.md)': '运行 GitHub App（见 docs/operate.zh.md）',
  'run jobs only, beside `serve`, on a shared PostgreSQL (DATABASE_URL)':
    '只执行任务，与 `serve` 并行，共用一个 PostgreSQL（DATABASE_URL）',
  'check what a server needs: credentials, permissions, webhook, store, disk, memory; exit 1 when something is wrong':
    '检查服务器的运行条件：凭据、权限、webhook、存储、磁盘、内存；有问题时退出码为 1',
  'register the GitHub App with two clicks in a browser, and write its credentials to a file':
    '在浏览器中点击两次即可注册 GitHub App，并把凭据写入文件',
  'https address under which GitHub reaches the server, such as https://npu-advisor.example':
    'GitHub 访问该服务器所用的 https 地址，例如 https://npu-advisor.example',
  'owner of the app; without it, the account that is logged in': 'App 的所有者；未给出时为当前登录的账号',
  'name of the app; names are unique on a GitHub': 'App 的名称；在同一个 GitHub 上不能重名',
  'file for the settings; the private key is written beside it': '写入设置的文件；私钥写在同一目录',
  'port of the page on this machine': '本机页面的端口',
  'file with variables, as `setup` writes it; those of the environment go first': '变量文件，格式同 `setup` 所写；环境变量优先',
  'output the version number': '输出版本号',
  'display help for command': '显示命令的帮助',
};

const TITLES: Readonly<Record<string, string>> = {
  'Usage:': '用法：',
  'Arguments:': '参数：',
  'Options:': '选项：',
  'Commands:': '命令：',
};

/** What commander says of a wrong command line; the quoted part stays. */
const MISTAKES: Readonly<Record<string, (name: string) => string>> = {
  'commander.unknownOption': (name) => `没有选项 ${name}`,
  'commander.unknownCommand': (name) => `没有命令 ${name}`,
  'commander.missingArgument': (name) => `缺少参数 ${name}`,
  'commander.missingMandatoryOptionValue': (name) => `没有给出必需的选项 ${name}`,
  'commander.optionMissingArgument': (name) => `选项 ${name} 缺少取值`,
  'commander.excessArguments': () => '参数过多',
};

/** The language that the command line names, else the one of the terminal. */
export function langOf(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Lang {
  const named = argv.flatMap((arg, i) => (arg === '--lang' ? [argv[i + 1]] : arg.startsWith('--lang=') ? [arg.slice(7)] : [])).at(-1);
  if (named === 'zh' || named === 'en') return named;
  const locale = [env.LC_ALL, env.LC_MESSAGES, env.LANG].find((value) => value !== undefined && value !== '');
  return locale !== undefined && /^zh(?:[_.-]|$)/i.test(locale) ? 'zh' : 'en';
}

/** Columns on a terminal: a Chinese character takes two. */
function columns(text: string): number {
  return [...text].reduce((sum, char) => sum + (/[\p{Script=Han}\u3000-\u303f\uff00-\uff60]/u.test(char) ? 2 : 1), 0);
}

/** Turns the help of a program into Chinese. A sentence without a translation stays as it is; a test knows of none. */
export function speakChinese(program: Command): void {
  const zh = (text: string): string => HELP[text] ?? text;
  const visit = (command: Command): void => {
    command.description(zh(command.description()));
    command.helpOption('-h, --help', '显示命令的帮助');
    command.configureHelp({
      styleTitle: (title: string) => TITLES[title] ?? title,
      styleOptionText: (text: string) => text.replace('[options]', '[选项]'),
      styleSubcommandText: (text: string) => text.replace('[command]', '[命令]'),
      displayWidth: columns,
      subcommandDescription: (sub: Command) => zh(sub.description()),
      optionDescription: ({ description, defaultValue }: Option) => {
        const fallback = typeof defaultValue === 'string' ? `（默认：${defaultValue}）` : '';
        return `${zh(description)}${fallback}`;
      },
    } satisfies Partial<Help>);
    for (const sub of command.commands) visit(sub);
  };
  if (program.commands.length > 0) program.helpCommand('help [命令]', '显示命令的帮助');
  visit(program);
}

/** A mistake on the command line, in Chinese. */
export function mistakeInChinese({ code, message }: CommanderError): string {
  const name = /'([^']*)'/.exec(message)?.[1] ?? '';
  return MISTAKES[code]?.(name) ?? message.replace(/^error: /, '');
}
