/* The generated pages in Chinese. Descriptions stand by the English ones of the schema, the environment and the store. */

/** An untranslated description stays English; `test/language` finds it on the page. */
export function zh(english: string): string {
  return DESCRIPTIONS[english] ?? english;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  // settings
  'Another repository of the same owner whose settings are used where this file says nothing.':
    '同一所有者的另一个仓库；本文件没有写明的设置取自它。',
  'Names of workflow artifacts that hold profiles. `*` stands for any characters, `?` for one.':
    '含 profile 的工作流 artifact 的名称。`*` 代表任意字符，`?` 代表一个字符。',
  'Workflow files whose artifacts are trusted, for example `.github/workflows/perf.yml`. null: all.':
    '信任哪些工作流文件的 artifact，例如 `.github/workflows/perf.yml`。null：全部。',
  'Language of comments and checks.': '评论与检查的语言。',
  'When a comment is created. An existing comment is always edited to the present state.': '何时创建评论。已有的评论总会更新到最新状态。',
  'One-click code suggestions: with every analysis, only after `/npu-advise suggest` or `run`, or never.':
    '一键应用的修改建议：每次分析都给出、仅在 `/npu-advise suggest` 或 `run` 之后给出，或从不给出。',
  'Branches besides the default branch whose profiles are kept to compare pull requests with, for example `release/*`.':
    '除默认分支外，还保存哪些分支的 profile 供 PR 对比，例如 `release/*`。',
  "Check on the merge queue's own commits. `reuse`: concluded at once with what the pull request's check found. `profile`: waits for a profile of a `merge_group` run and applies the gate.":
    '合并队列自身提交上的检查。`reuse`：直接沿用 PR 检查的结果。`profile`：等待 `merge_group` 运行的 profile 并执行门禁。',
  'Profiles that a pull request adds or changes as files of the repository, for example `perf/*.json`: a digest, a zip or a tar.gz each. Read when no run of the commit uploaded one.':
    'PR 以仓库文件形式新增或修改的 profile，例如 `perf/*.json`：每个文件为摘要文件、zip 或 tar.gz。该提交的运行没有上传 profile 时读取。',
  'A release whose assets hold profiles, for runners that cannot upload artifacts. Looked at when no run of the commit uploaded one.':
    '附件中含 profile 的 release，适合无法上传 artifact 的 runner。该提交的运行没有上传 profile 时查看。',
  'Tag of a release of this repository.': '本仓库某个 release 的 tag。',
  'Names of its assets. `{sha}` stands for 7 to 40 digits of the head commit and must be there, so that no commit gets the profile of another.':
    '其附件的名称。`{sha}` 代表最新提交号的 7～40 位，必须写明，以免某个提交用到另一个提交的 profile。',
  'Whether a profile may be attached to a pull request of a public repository: a file in its description whose name holds the first 7 digits of the head commit, or one that `/npu-advise run` is given the address of. It passes no gate, and takes back no failure of a run.':
    '公开仓库的 PR 是否可以附上 profile：描述中的附件，文件名含最新提交号的前 7 位；或由 `/npu-advise run` 给出地址。它不能使门禁通过，也不会撤回某次运行得出的不通过。',
  'Conclusion of the check when no profile arrived.': '没有收到 profile 时检查的结论。',
  'Minutes after a push at which a check that still waits for a profile is concluded with on_missing. In a merge queue 50 unless it is set.':
    '推送之后多少分钟仍未收到 profile，检查即按 `on_missing` 得出结论。合并队列中未设置时为 50。',
  'Options of single rules, by rule id; docs/rules names them.': '各检查项的选项，按检查项名称；见[检查项](zh/rules/README.md)。',
  'Rules that are not run.': '不执行的检查项。',
  'What no profile tells of the job: `global_batch_size`, `sequence_length`. Known, throughput is reported.':
    'profile 中没有的作业信息：`global_batch_size`、`sequence_length`。给出后会报告吞吐。',
  'Samples that all ranks together train per step. What the trainer recorded in the profile goes before it.':
    '所有卡每迭代合计训练的样本数。训练框架记录在 profile 中的值优先。',
  'Tokens per sample.': '每个样本的 token 数。',
  'What fails the check. null: the check only informs and its conclusion is neutral.':
    '什么情况使检查不通过。null：检查只作提示，结论为中立。',
  'Fails when a counted finding is at least this severe. Counted: a likely saving is known and confidence is medium or high.':
    '计入的原因达到该严重程度即不通过。计入：可省时间有估计值，且置信度为中或高。',
  'Fails when the counted findings together cost more than this per step.': '计入的原因合计每迭代超过该值即不通过。',
  'The same as a share of the step, 0 to 1.': '同上，以占迭代的比例表示，0～1。',
  'Fails when a step takes more than this longer than in the baseline, and that is measured.':
    '迭代比基线变慢超过该值，且由实测得出，即不通过。',
  "The same as a share of the baseline's step: 0.05 is 5 %.": '同上，以占基线迭代的比例表示：0.05 即 5%。',
  'Fails when one of these rules has a counted finding, however small. Neutral when one of them could not be checked.':
    '这些检查项中有任何计入的原因，无论大小，即不通过。其中有无法检查的项时为中立。',
  'Findings that are known and accepted, by `rule` and `path`, with `until` and `reason`. Shown apart, and no gate fails for them.':
    '已知并接受的原因，按 `rule` 与 `path` 指定，可带 `until` 与 `reason`。单独列出，不会使门禁不通过。',
  'Rule id; `*` stands for any characters.': '检查项名称；`*` 代表任意字符。',
  'Only findings whose lines all lie in files with such a name, for example `legacy/*` (`*` also stands for `/`).':
    '只限代码行全部位于这类文件中的原因，例如 `legacy/*`（`*` 也代表 `/`）。',
  'Last day it applies, UTC, for example 2027-01-31.': '有效的最后一天，UTC，例如 2027-01-31。',
  'Why; shown beside the finding.': '理由；显示在该原因旁。',
  'Several training jobs in one repository, by name; each with `paths`, `artifacts`, `workflows`, `files`, `on_missing`, `thresholds`, `disabled_rules`, `job`, `gate`, `baseline` of its own. One comment and one check tell of all of them. null: one job.':
    '一个仓库中的多个训练作业，按名称；每个作业可有自己的 `paths`、`artifacts`、`workflows`、`files`、`on_missing`、`thresholds`、`disabled_rules`、`job`、`gate`、`baseline`。全部作业合为一条评论与一个检查。null：只有一个作业。',
  'Files the job is made of, for example `models/bert/*` (`*` also stands for `/`). A pull request that changes none of them is not asked for its profile. Without: every pull request.':
    '组成该作业的文件，例如 `models/bert/*`（`*` 也代表 `/`）。没有改动其中任何文件的 PR，不要求其 profile。未给出时：所有 PR。',
  'Names of its artifacts. Without: `ascend-profile-NAME*` and `npu-profile-NAME*`.':
    '其 artifact 的名称。未给出时：`ascend-profile-NAME*` 与 `npu-profile-NAME*`。',
  'Workflow files its artifacts are taken from.': '其 artifact 取自哪些工作流文件。',
  'Profiles of it that a pull request adds or changes as files of the repository.': 'PR 以仓库文件形式新增或修改的该作业的 profile。',
  'Conclusion of the check when its profile did not arrive.': '没有收到其 profile 时检查的结论。',
  'Options of single rules.': '各检查项的选项。',
  'What no profile tells of it.': 'profile 中没有的该作业信息。',
  'What fails the check.': '什么情况使检查不通过。',
  'Name its history is kept under, by default its own. Jobs that share it are compared with each other.':
    '保存历史数据所用的名称，默认为作业自己的名称。共用同一名称的作业互相对比。',
  // environment
  'Required. Number of the GitHub App.': '必需。GitHub App 的编号。',
  'Private key of the app, PEM or base64 of it. Or PRIVATE_KEY_PATH.': 'App 的私钥，PEM 或其 base64。也可用 `PRIVATE_KEY_PATH`。',
  'File that holds the private key.': '存放私钥的文件。',
  'Required. Secret of the webhook, at least 32 bytes.': '必需。webhook 的 secret，至少 32 字节。',
  'Old secret, still accepted while it is being changed.': '旧的 secret，更换期间仍然接受。',
  'Host (and port) of a GitHub Enterprise Server, or SUBDOMAIN.ghe.com. Empty: GitHub.com.':
    'GitHub Enterprise Server 的主机（与端口），或 SUBDOMAIN.ghe.com。空：GitHub.com。',
  'File with the certificates (PEM) of a private authority that signed those of the server and its storage.':
    '私有证书机构的证书文件（PEM），该机构签发了服务器及其存储的证书。',
  '`https`, or `http` for a stand-in on this machine.': '`https`；本机上的替身可用 `http`。',
  'Address to listen on; `0.0.0.0` in a container.': '监听地址；容器中为 `0.0.0.0`。',
  'Port to listen on; 0 takes a free one.': '监听端口；0 表示任选空闲端口。',
  'Set to 1, a new server takes the port over before the old one ends (Linux, with `DATABASE_URL`). Of both of them.':
    '设为 1 时，新的服务器先接管端口，旧的再结束（Linux，须设置 `DATABASE_URL`）。新旧两个进程都要设置。',
  'Port of `/metrics`, apart from the webhook; `/healthz` and `/readyz` are there, too. Empty: not served.':
    '`/metrics` 的端口，与 webhook 分开；`/healthz` 与 `/readyz` 也在此处。空：不提供。',
  'Address to serve metrics on. They are for those who run the server: never one that the internet reaches.':
    '提供指标的地址。指标只供运维人员使用，不得是互联网可访问的地址。',
  'Address under which people reach this server, such as `https://npu-advisor.example`. Then comments and checks link to the whole report. Empty: no such links.':
    '用户访问该服务器的地址，例如 `https://npu-advisor.example`。设置后，评论与检查会链接到完整报告。空：没有这类链接。',
  'Days a link to a report works; those of open pull requests are renewed.': '报告链接的有效天数；PR 未关闭时会自动更新。',
  'PostgreSQL shared by several processes. Empty: embedded store.': '多个进程共用的 PostgreSQL。空：内置存储。',
  'Folder for the embedded store, accepted deliveries and downloads. One process each.':
    '存放内置存储、已接收的投递与下载内容的目录。每个进程一个。',
  'Hosts artifacts may come from: `name`, `name:port` or `*.suffix`, separated by commas. Spelt-out hosts may be private.':
    'artifact 可来自哪些主机：`name`、`name:port` 或 `*.suffix`，以逗号分隔。完整写出的主机可以是内网地址。',
  'Repositories that are served: `owner/name`, with `*` and `?`, separated by commas. Empty: all the App is installed on.':
    '服务哪些仓库：`owner/name`，可用 `*` 与 `?`，以逗号分隔。空：安装了该 App 的全部仓库。',
  'Bytes of artifacts that are fetched for one repository in a day (UTC); a job that has begun is finished.':
    '每个仓库每天（UTC）最多下载多少 artifact；已开始的任务会完成。',
  'Bytes of artifacts that are fetched for one job at most.': '每个任务最多下载多少 artifact。',
  'From so many bytes on a job is read by all workers side by side: an artifact at a time, of a large zip some of its ranks; 0 never.':
    '任务达到该大小时，由所有 worker 并行读取：每次一个 artifact，大型 zip 每次读取其中部分卡；0：从不。',
  'Where the facts of a large job lie until it is put together: absolute path of a folder that all machines share, or `s3://bucket/prefix`. The same for every process. Empty: in the database.':
    '大型任务的摘要在汇总之前存放于何处：所有机器共享的目录的绝对路径，或 `s3://bucket/prefix`。各进程须一致。留空：存于数据库。',
  'Address of the storage of that bucket, where it is not Amazon S3; with the bucket in the name of the host where it wants so.':
    '该存储桶所在存储服务的地址（不是 Amazon S3 时）；服务要求时，主机名中带上桶名。',
  'Region of that bucket.': '该存储桶的区域。',
  'Key that may list, read, write and remove in that bucket.': '对该存储桶有列举、读、写、删权限的密钥。',
  'Its secret.': '该密钥的私密部分。',
  'About so many bytes of one large zip are read by one worker at a time.': '单个大型 zip 中，每个 worker 每次约读取多少。',
  'Time limit of one download, retries included.': '单次下载的时间上限，含重试。',
  'Time limit of one analysis.': '单次分析的时间上限。',
  'Memory limit of the analysis process.': '分析进程的内存上限。',
  'Analyses that run at the same time in this process.': '该进程同时进行的分析数。',
  'Memory that the analyses of this process may take together; no more are started. Empty: that of the machine or container.':
    '该进程的各项分析合计可用的内存，超出则不再开始新的分析。空：以机器或容器的内存为准。',
  'Room that the downloads of this process may take together; no more are started. Empty: 80 % of what is free.':
    '该进程的各项下载合计可用的磁盘空间，超出则不再开始新的下载。空：剩余空间的 80%。',
  'Comments with commands and buttons of one person in one repository that are heard within an hour.':
    '一个人在一个仓库中，每小时受理的命令评论与按钮次数。',
  'Tries before a job gives up and says so on the check.': '任务放弃之前的尝试次数；放弃时在检查上说明。',
  'Pause before the second try; it doubles with every further one.': '第二次尝试之前的等待时间，之后每次加倍。',
  'How often a check shows how far a long analysis is; 0 never.': '长时间分析的进度多久在检查上更新一次；0：从不。',
  'How often deadlines and forgotten work are looked for.': '多久检查一次截止时间与遗漏的工作。',
  'How long running jobs may go on after SIGTERM.': '收到 SIGTERM 后，进行中的任务还可继续多久。',
  '`debug`, `info`, `warn` or `error`.': '`debug`、`info`、`warn` 或 `error`。',
  // what is kept
  'Id, event name and time of accepted webhook deliveries. With PostgreSQL also what is left of the event (numbers, names of repository and people, commands), until a job takes it up.':
    '已接收的 webhook 投递的标识、事件名与时间。使用 PostgreSQL 时还有事件裁剪后的内容（编号、仓库与人员的名称、命令），直到被任务取走。',
  'What is to be done for a pull request, run, commit or comment: names of repository and people, numbers, commits, commands.':
    '要为某个 PR、运行、提交或评论做的事：仓库与人员的名称、编号、提交、命令。',
  'Number of the installation, name of the account, whether it is suspended.': '安装的编号、账号名、是否已暂停。',
  'Number, owner and name of each repository an event has come from, and its installation.':
    '收到过事件的每个仓库的编号、所有者与名称，以及所属的安装。',
  'Which check run stands on which commit, its conclusion and deadline.': '哪个提交上有哪个检查，及其结论与截止时间。',
  'The conclusion and deadline of each pull request on its commit, and what its check says: title, summary, text and annotations.':
    '每个 PR 在其提交上的结论与截止时间，以及检查的内容：标题、摘要、正文与注解。',
  'Which comment is ours, titles and savings of the findings it names, which suggestions were offered.':
    '哪条评论是本 App 的，其中各原因的标题与可省时间，给出过哪些修改建议。',
  'Finished reports: names and times of operators, paths and lines of source files that the profile points at, suggested changes.':
    '已完成的报告：算子名称与耗时，profile 指向的源文件路径与行号，建议的改动。',
  'Reports as the comment shows them, for the details page (only with `NPU_ADVISOR_PUBLIC_URL`): what a report holds, the tasks of a few ranks and steps, number of the pull request, commit, address of the repository.':
    '评论所示的报告，供详情页使用（仅在设置 `NPU_ADVISOR_PUBLIC_URL` 时）：报告内容、少量卡与迭代的任务、PR 编号、提交、仓库地址。',
  'Login of a person who gave a command or pressed a button, and when.': '发出命令或点击按钮者的登录名与时间。',
  'What people have acknowledged on a pull request: login, time, reason, title and cost of the finding.':
    'PR 上已确认的内容：登录名、时间、理由、原因的标题与代价。',
  'Figures of each profile for its trend (step time, idle share, largest causes), its commit and branch, and for a while its facts: the small digest that a comparison needs.':
    '每份 profile 用于走势的数据（迭代耗时、空闲占比、最大的原因）、其提交与分支；以及在一段时间内保存其摘要，供对比使用。',
  'Shares of a large job that several workers read: numbers and names of artifacts, and the facts of their ranks (with `NPU_ADVISOR_BLOBS` in that folder or bucket).':
    '由多个 worker 分担读取的大型任务的各部分：artifact 的编号与名称，及其各卡的摘要（设置 `NPU_ADVISOR_BLOBS` 时在该目录或存储桶中）。',
  'Names of facts outside of the database (`NPU_ADVISOR_BLOBS`) that are being removed: number of the repository.':
    '正在删除的、数据库之外的摘要（`NPU_ADVISOR_BLOBS`）的名称：含仓库编号。',
  'until they are removed, as a rule within seconds': '直到删除，一般在数秒之内',
  'When this server was last alive.': '该服务器最近一次存活的时间。',
  'Bytes of artifacts fetched for a repository on a day.': '某仓库某天下载 artifact 的字节数。',
  'Number of an installation or repository whose data is being erased.': '正在清除数据的安装或仓库的编号。',
  'Version of the schema.': '数据表结构的版本。',
  'Whose turn it is: kind, number of the repository, number of the pull request, run or comment; messages of failures.':
    '轮到谁处理：类别、仓库编号，PR、运行或评论的编号；失败信息。',
  'after they arrived': '自收到起',
  'after they were settled': '自处理完成起',
  'until the App is removed': '直到 App 被卸载',
  'until the App is removed from the repository': '直到 App 从该仓库卸载',
  'after they were concluded': '自得出结论起',
  'after the last change': '自最后一次变更起',
  'after they were made; the newest 2,000 at most': '自生成起；最多保留最新的 2,000 份',
  'until the last link to them ends (`NPU_ADVISOR_LINK_DAYS`, 30 days unless set, renewed while the pull request is open); the newest 2,000 at most':
    '直到最后一个链接失效（`NPU_ADVISOR_LINK_DAYS`，默认 30 天，PR 未关闭时自动更新）；最多保留最新的 2,000 份',
  'after they asked': '自发出起',
  'after they were given': '自确认起',
  'after they were recorded; facts of branches 180 days, of pull requests 14 days, 128 MB of a repository at most':
    '自记录起；分支的摘要保留 180 天，PR 的摘要保留 14 天，每个仓库最多 128 MB',
  'after they were read': '自读取起',
  'until it is overwritten': '直到被覆盖',
  'after that day': '自当天起',
  'after it was asked for': '自提出起',
  'as long as the store': '与存储同在',
  'after they ended': '自结束起',
  // report.json
  'where the time of each step goes, by rank': '每个迭代的时间去向，按卡',
  'a person attached the profile, nothing binds it to the commit; its gate is never passed':
    'profile 由人附上，与提交没有绑定关系；其门禁从不通过',
  'what a reader should know of the profile': '关于这份 profile 需要知道的事',
  'unified diff of all edits, as `git apply` takes it; absent without edits':
    '全部改动的 unified diff，可由 `git apply` 应用；没有改动时不出现',
  'one sentence: what the cards waited for and what it costs': '一句话：卡在等什么，代价多大',
  'ranks that were read': '读取到的卡',
  'rank folders whose rank number is not recorded': '没有记录卡序号的单卡目录数',
  'ranks of the whole job': '整个作业的卡数',
  'how it is known': '由何得知',
  'ranks of the job whose profile is not here': '作业中没有 profile 的卡',
  'steps used': '采用的迭代',
  'median over the steps used, of the slowest rank': '最慢的卡在所采用迭代上的中位数',
  'what the step time is: distance of step starts, one step, or the span of the device':
    '迭代耗时的含义：迭代起点的间隔、单个迭代，或设备侧的时间跨度',
  'MAD of the step time; null with one step': '迭代耗时的 MAD；只有一个迭代时为 null',
  'from the profile, else from the settings (`job`)': '取自 profile，否则取自配置（`job`）',
  'from the start of this step to that of the next, on the host': '从本迭代开始到下一迭代开始，Host 侧',
  'Stage of step_trace_time: first to last work of the card, without Bubble':
    'step_trace_time 的 Stage：卡上第一个任务到最后一个任务，不含 Bubble',
  'the card computes': '卡在计算',
  'the card communicates, waiting for other ranks included': '卡在通信，含等待其他卡的时间',
  'communication that no computing covers': '没有被计算掩盖的部分，即未掩盖通信',
  'communication beside computing': '与计算同时进行的通信，即已掩盖通信',
  'the card does nothing, between its first and last work': '第一个任务与最后一个任务之间，卡无事可做',
  'waits for another pipeline stage; contained in exposedCommunicationMs': '等待另一个流水线阶段；已含在 exposedCommunicationMs 中',
  'start of the step to the first work of the card': '迭代开始到卡上第一个任务',
  'last work of the card to the end of the step, of a capture of one step; with several it is part of the next one: 0':
    '只采集一个迭代时，卡上最后一个任务到迭代结束；采集多个迭代时计入下一个迭代，此处为 0',
  'file the row is from': '该行来自的文件',
  'causes, most severe first': '原因，最严重的在前',
  'stable fingerprint: the same problem on the next push has the same id': '稳定的指纹：下次推送时，同一问题的标识相同',
  'id of the rule': '检查项的标识',
  'the cause in one line': '一行写明原因',
  'by the share of the step it costs: critical from 15 %, high from 5 %, medium from 2 %; a bound and low confidence are medium at most':
    '按其代价占迭代的比例：15% 起为严重，5% 起为高，2% 起为中；仅知上限或置信度低时，最高为中',
  'the ranks where the cause sits, not the ranks that suffer': '原因所在的卡，不是受影响的卡',
  'steps it was seen in': '出现该原因的迭代',
  'communicators it concerns': '涉及的通信域',
  'null: it costs no measurable time': 'null：没有可测量的耗时代价',
  'measured: a reference run or rank shows it; modelled: replay; bound: only a bound is known, likely is null':
    'measured：由参照的运行或卡测得；modelled：由重放推算；bound：仅知上限，likely 为 null',
  'headline saving (likely, else ceiling) divided by the step time': '代表值（likely，没有时取 ceiling）除以迭代耗时',
  'how the figures were obtained, one sentence': '数据如何得出，一句话',
  'id of the finding that explains this one': '能解释本项的原因的标识',
  'ids of causes that take as long at the same time: this one saves nothing alone, only without them, too':
    '同时占用同样长时间的原因的标识：单独去掉本项省不下时间，须连同它们一起去掉',
  'facts of the profile behind it': 'profile 中的依据',
  'one measured fact, with its figures': '一项测得的事实，附数据',
  'file of the profile, relative to what was uploaded, e.g. rank0/trace_view.json':
    'profile 中的文件，相对于上传的内容，例如 rank0/trace_view.json',
  'rank it was measured on': '在哪张卡上测得',
  'number of the step, as the profile counts': '迭代的编号，按 profile 的计数',
  'µs since the first event of that rank (rank clock)': '自该卡第一个事件起的 µs（该卡的时钟）',
  'what caps the confidence or the saving': '限制置信度或可省时间的因素',
  'places to change, best first': '需要修改的位置，最合适的在前',
  'path in the repository; of `profile`: as the call stack names it': '仓库中的路径；`profile` 时为调用栈所写的路径',
  'function the line is in': '该行所在的函数',
  'profile: a frame of a call stack; call-stack: the same, checked against the repository; syntax: found in the source':
    'profile：调用栈中的一帧；call-stack：同上，且已与仓库核对；syntax：在源码中找到',
  'line in the profiled code; the same call was found here': '采集时代码中的行号；同一调用现在位于此处',
  'the profile fits this many places equally well; this is one of them': 'profile 与这么多个位置同样相符；此处是其中之一',
  'what to change, best first': '怎么改，最合适的在前',
  'id of the remedy': '改法的标识',
  'why it helps, and how to check that it did': '为何有效，以及如何验证',
  'example to adapt, Python or shell; null when the edit says it all': '供参照修改的示例，Python 或 shell；改动已说明一切时为 null',
  'changes of lines in the repository': '仓库中各行的改动',
  'last line that is replaced': '被替换的最后一行',
  'these lines as they are': '这些行的现状',
  'and as they should be': '这些行改后的内容',
  'suggestion: provably safe and inside the diff, may be offered as one click': 'suggestion：可证明安全且在 diff 之内，可提供一键应用',
  'what has to hold before it is applied': '应用之前必须成立的条件',
  'addresses of the documentation behind it': '所依据文档的地址',
  'of the rule; absent: stable. A preview never fails a gate': '检查项的成熟度；不出现即为 stable。预览从不使门禁不通过',
  'somebody knows and accepts it: no gate fails for it': '已有人知悉并接受：门禁不会因它不通过',
  'login of the person; null: the settings file': '确认者的登录名；null：来自配置文件',
  'day, UTC; null: the settings file': '日期，UTC；null：来自配置文件',
  'last day it holds, UTC; null: until the cost grows': '有效的最后一天，UTC；null：直到代价增大',
  'as written, foreign text': '原样保留的外部文字',
  'its saving when it was acknowledged; null: it had none, or the settings file': '确认时的可省时间；null：当时没有，或来自配置文件',
  'every rule, exactly once': '每个检查项，恰好一次',
  'of pass: what was measured; of notApplicable: what is missing': 'pass 时：测得了什么；notApplicable 时：缺少什么',
  'all causes removed together; never more than the step': '全部原因一起去掉时；从不超过迭代耗时',
  'idle time per step that no cause owns, on the rank that sets the pace': '每迭代中不归属任何原因的空闲时间，取决定快慢的那张卡',
  'null: no baseline': 'null：没有基线',
  'more than one: repeats of the unchanged job, which tell how far runs differ':
    '多于一次时：未改动作业的重复运行，由此可知各次运行相差多少',
  'chosen from the history of the repository; absent: given by hand': '从仓库的历史中选出；不出现即为手工给出',
  'branch whose run profiled it; null: it was the head of a pull request':
    '采集该 profile 的运行所属的分支；null：它曾是某个 PR 的最新提交',
  'base branch of the pull request': 'PR 的基线分支',
  'the merge base has no profile, so an older commit stands in': '合并基点没有 profile，由更早的提交代替',
  'commits between it and the merge base': '它与合并基点之间的提交数',
  'age of its newest profile when the comparison was made': '对比时，其最新 profile 已有多久',
  'of the step time; incomparable: `refusals` says why': '针对迭代耗时；incomparable 时，理由见 `refusals`',
  'the verdict in one sentence': '一句话的结论',
  'step time of this job over the ranks that are compared': '本作业在所对比的卡上的迭代耗时',
  'step time less that of the baseline; null when the two cannot be subtracted': '迭代耗时减去基线的迭代耗时；两者不能相减时为 null',
  '95 % interval of deltaMs, ms': 'deltaMs 的 95% 区间，ms',
  'a smaller change is not called one': '更小的变化不算变化',
  'largest less smallest step time of the runs of the baseline; null with one run':
    '基线各次运行中，最大与最小迭代耗时之差；只有一次运行时为 null',
  '95 % interval of the delta': '差值的 95% 区间',
  'the other ranks wait for this one': '其他卡在等待它',
  'parts of the step; their deltaMs add up to deltaMs. Parts below 1 % of the step are in the last one':
    '迭代的各部分；它们的 deltaMs 之和等于 deltaMs。不足迭代 1% 的部分归入最后一项',
  'per step': '每迭代',
  'causes that came, went or changed, largest first; they overlap with the contributors':
    '新增、消失或变化的原因，最大的在前；与 contributors 有重叠',
  'headline saving; null when the baseline does not have the finding': '代表值；基线没有该原因时为 null',
  'only the upper bound of a saving is known': '可省时间仅知上限',
  'null: the settings have no gate': 'null：配置中没有门禁',
  'why: the limits that were exceeded, or what could not be judged': '理由：超出了哪些限制，或什么无法判断',
  'keys of the gate whose limit was exceeded': '超出限制的门禁键',
  'every file of the upload, and what became of it': '上传的每个文件及其处理结果',
  'in the upload': '在上传内容中的路径',
  'what it was taken for': '被识别为什么',
  'why it was not, or not wholly, used': '为何没有采用，或没有全部采用',
  'what this profile could not tell, what we therefore do not know, and how to find out':
    '这份 profile 不能说明什么、因此不知道什么、如何得知',
};

export interface Rows {
  readonly head: string;
  readonly rows: readonly string[];
}

export function commandsInChinese(header: string, rows: readonly string[]): string {
  return `${header}
# PR 上的命令

[English](commands.md)

命令写在新评论的行首。修改旧评论不起作用；代码、引用与 HTML 注释中的命令也不起作用。全角字母与空格按半角处理。每条评论最多受理五个命令。用表情回应表示命令已受理（👀）以及结果（👍 或 😕）；
只有需要说明时才回复，紧接着再次提出同样的问题时，更新已有的回复。

| 命令 | 作用 | 谁可以使用 |
|---|---|---|
${rows.join('\n')}

## 确认

\`ack\` 表示在这个 PR 上接受某个原因。该原因移到评论中单独的一部分，写明由谁、何时、为何确认；不再作为注解，也不会使门禁不通过。下次推送时由指纹重新认出它，指纹不含耗时与行号。
以下情况会自动恢复：可省时间增长超过 10% 且超过迭代噪声；原来只知上限的代价变为已知；超过 \`until\` 的最后一天（UTC，最长一年）。\`ack regression\` 表示接受迭代比基线慢。
检查上的按钮「全部确认」对所有待处理的原因生效。只有对仓库有写权限的人可以确认，包括有写权限的改动作者，评论会写明是谁。\`status\` 列出已确认的内容及其是否仍然有效。
整个仓库都接受的原因写入[配置](config.zh.md)的 \`mute\`，只从基线分支读取。
`;
}

export function configInChinese(header: string, tables: Readonly<Record<'keys' | 'gate' | 'mute' | 'job', readonly string[]>>): string {
  return `${header}
# \`.github/npu-advisor.yml\`

[English](config.md)

从 PR 的基线分支读取，绝不从其最新提交读取。所有键都可省略；未知的键视为错误。修改该文件的 PR 会得到一个单独的检查，错误标在对应的行上；PR 中的版本只做检查，不生效。
\`npx npu-advise config validate FILE\` 给出同样的结果，\`--format github\` 输出为工作流运行的注解。

编辑器可依据其 [JSON Schema](../schema/config.schema.json) 检查与补全，首行写明（路径，或副本所在的地址）：

\`\`\`yaml
# yaml-language-server: $schema=https://unpkg.com/npu-advisor/schema/config.schema.json
\`\`\`

| 键 | 默认值 | 作用 |
|---|---|---|
${tables.keys.join('\n')}

## 共享配置

仓库中没有该文件时，采用所有者的 \`.github\` 仓库中的同名文件。\`_extends: perf-settings\`、\`_extends: acme/perf-settings\` 或 \`_extends: perf-settings:teams/vision.yml\` 指定同一所有者的另一个文件，
最多连续四个。文件自身的内容优先于它所继承的内容：映射逐键合并，列表、值与 \`null\` 直接替换。私有仓库须安装该 App 才能读取。\`npu-advise config validate FILE EXTENDED…\` 一并检查多个文件，最近的在前。

## 门禁

\`\`\`yaml
gate:
  severity: high
  regression: { share: 0.05 }
  rules: [dataloader-stall]
\`\`\`

每个限制单独判断，超出任何一个，检查即不通过。计入的原因：可省时间有估计值，置信度为中或高，检查项不是预览，且没有被确认或静默。某个限制没有可供判断的数据时，门禁为中立。

| \`gate\` 的键 | 作用 |
|---|---|
${tables.gate.join('\n')}

## 静默

\`\`\`yaml
mute:
  - { rule: slow-rank, until: 2027-01-31, reason: card replacement is booked }
  - { rule: '*', path: legacy/ }
\`\`\`

用于整个仓库都接受的原因；只在某个 PR 上接受时，使用 [\`/npu-advise ack\`](commands.zh.md#确认)。

| \`mute\` 的键 | 作用 |
|---|---|
${tables.mute.join('\n')}

## 多个训练作业

\`\`\`yaml
gate: { severity: high }
jobs:
  bert: # 采用 ascend-profile-bert* 与 npu-profile-bert* 这些 artifact
    paths: [models/bert/*, common/*]
  gpt:
    paths: [models/gpt/*]
    artifacts: [gpt-profile*]
    gate: { regression: { share: 0.05 } }
    thresholds: { pipeline-bubble: { minShare: 0.2 } }
    on_missing: failure
\`\`\`

PR 改动了哪些作业的 \`paths\`，就要求哪些作业的 profile。全部作业合为一条评论与一个检查，其结论取最差的一个。

| 作业的键 | 作用 |
|---|---|
${tables.job.join('\n')}
`;
}

export function environmentInChinese(header: string, rows: readonly string[]): string {
  return `${header}
# \`npu-advise serve\` 的环境变量

[English](environment.md)

| 变量 | 默认值 | 含义 |
|---|---|---|
${rows.join('\n')}
`;
}

export function privacyInChinese(header: string, rows: readonly string[]): string {
  return `${header}
# 保存什么，保存多久

[English](privacy.md)

不需要账号，数据不出售、不转交，也没有遥测：服务器只连接所配置的 GitHub 与存放其 artifact 的主机，不连接其他任何地址。有测试监视它建立的每个连接。

## 读取而不保存

- **webhook 事件**：到达时即裁剪为编号、名称与提交；评论只保留其中的命令。
- **artifact**：分析期间存放在 \`scratch\`，分析无论以何种方式结束都会删除。被强制终止的进程留下的内容，在下次启动时删除。
- **源文件**：只为一次分析读入内存。报告保留它所指出的路径与行号，以及建议改动的行。
- **令牌**：只保存在内存中。任何令牌、密钥与 secret 都不写入磁盘或日志。

## 保存

保存在数据目录（\`NPU_ADVISOR_DATA_DIR\`），设置 \`DATABASE_URL\` 时保存在 PostgreSQL：

| 表 | 内容 | 保存多久 |
|---|---|---|
${rows.join('\n')}

不使用 PostgreSQL 时，已接收的投递还会在 \`spool\` 中各存一个文件，约一秒后由任务取走；无法读取的文件在 12 小时后删除。

**日志**以 JSON 写到标准输出，保留与否由部署者决定。其中有：仓库、PR、运行与 artifact 的编号，提交与分支名，发出命令者的登录名，确认的内容及所给的理由，需要等待的 GitHub 请求的地址（含所有者、仓库与路径），
以及可能引用 artifact 或文件名的错误信息；没有事件原文，没有 profile 的数据表，没有令牌。

GitHub 上留有评论、检查与修改建议。它们属于仓库；卸载 App 不会删除它们。

## 卸载 App

从某个仓库或全部仓库卸载时：GitHub 发出通知，服务器先核实是否仍然如此（事件可能迟到，顺序也不固定），然后删除这些仓库的每一行数据并释放空间，通常在一分钟内完成。三小时后再清除一次，
以覆盖当时仍在进行的任务所写的内容。若事件丢失，每六小时会比对一次安装列表。若无法向 GitHub 核实，20 小时后按事件处理。因此 24 小时内，任何表与任何文件中都不再留有数据；有测试逐一检查。

使用 PostgreSQL 时，已删除的行在数据库覆盖之后才从文件中消失；备份中的内容由部署者负责。

**已暂停**的安装保留其数据，按上表到期。**已转移**的仓库，若新所有者也安装了该 App，则保留其数据：清除某个仓库之前，会先向其他安装查询；否则清除。**已归档**的仓库按上表到期。
需要提前清除某个 PR 的数据时，删除其评论并联系运维人员。
`;
}
