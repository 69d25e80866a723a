/**
 * The import map: data flows one way. Each rule says where a thing belongs instead.
 * source → importer → rank facts → job facts → rules → findings → remedies → report → render → deliver
 */
const only = (name, from, allowed, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: `^src/${from}/` },
  to: { path: '^(src|lab|test)/', pathNot: [`^src/${from}/`, ...allowed.map((a) => `^src/${a}`)] },
});

export default {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Two modules that need each other are one module, or miss a third.',
      severity: 'error',
      from: {},
      to: { circular: true, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-orphans',
      comment: 'Nothing imports it: delete it.',
      severity: 'error',
      from: {
        orphan: true,
        path: '^(src|lab)/',
        pathNot: [
          '/main\\.ts$',
          'trim-description\\.ts$',
          'work-thread\\.ts$',
          'analysis-worker\\.ts$',
          'analyser\\.ts$',
          '^lab/demo/repository/',
        ],
      },
      to: {},
    },
    only(
      'base-knows-nothing',
      'base',
      ['model/lang\\.ts$'],
      'base has no domain; what knows profiles or reports belongs in model or above.',
    ),
    only(
      'model-is-nouns',
      'model',
      ['base/', 'facts/job/index\\.ts$', 'replay/replay\\.ts$'],
      'model holds types; a rule names the facts it reads, by type only.',
    ),
    only('sources-open-files', 'sources', ['base/'], 'sources hand out bytes; what they mean is an importer’s business.'),
    only(
      'importers-end-foreign-shapes',
      'importers',
      ['base/', 'model/', 'sources/'],
      'Foreign spellings die in the importer; facts are computed in src/facts.',
    ),
    only('rank-facts-see-one-rank', 'facts/rank', ['base/', 'model/'], 'What needs two ranks is a job fact.'),
    only(
      'job-facts-see-rank-facts',
      'facts/job',
      ['base/', 'model/', 'facts/rank/', 'replay/'],
      'Job facts are computed from rank facts, never from files.',
    ),
    only('replay-is-pure', 'replay', ['base/', 'model/'], 'The replay knows the tape only.'),
    only(
      'rules-know-time',
      'rules',
      ['base/', 'model/', 'facts/', 'replay/'],
      'Rules know time, remedies know code, renderers know neither.',
    ),
    {
      name: 'rules-apart',
      comment: 'A rule never imports another rule: shared quantities are facts.',
      severity: 'error',
      from: { path: '^src/rules/([^/]+)/' },
      to: { path: '^src/rules/[^/]+/', pathNot: '^src/rules/$1/' },
    },
    only('source-knows-code', 'source', ['base/', 'model/'], 'source reads Python and diffs; what to advise is a remedy’s business.'),
    only('remedies-know-code', 'remedies', ['base/', 'model/', 'source/'], 'A remedy never sees the profile: the rule hands it params.'),
    only(
      'report-is-pure',
      'report',
      ['base/', 'model/', 'facts/', 'replay/', 'config/schema\\.ts$'],
      'The report is put together from findings; it reads no file and renders nothing.',
    ),
    only(
      'engine-joins',
      'engine',
      ['base/', 'model/', 'sources/', 'importers/', 'facts/', 'rules/', 'remedies/', 'source/', 'report/', 'config/'],
      'The engine knows neither GitHub nor how results look.',
    ),
    only('render-is-blind', 'render', ['base/', 'model/', 'config/'], 'A renderer gets a report; it computes no figure of its own.'),
    only('config-is-small', 'config', ['base/', 'model/'], 'config checks a file against the schema; it does not apply it.'),
    only('store-knows-rows', 'store', ['base/', 'model/', 'config/'], 'The store keeps what it is given.'),
    only(
      'commands-ask-a-client',
      'commands',
      ['base/', 'model/', 'config/', 'render/'],
      'A command gets a narrow client; the App implements it.',
    ),
    only(
      'github-is-an-edge',
      'github',
      ['base/', 'model/', 'config/', 'render/', 'store/ports\\.ts$', 'source/'],
      'GitHub code neither diagnoses nor stores.',
    ),
    only(
      'cli-is-an-edge',
      'cli',
      ['base/', 'model/', 'config/', 'engine/', 'render/', 'sources/', 'source/', 'rules/', 'app/main\\.ts$'],
      'The CLI starts the engine; GitHub and store belong to src/app.',
    ),
    {
      name: 'analyze-is-light',
      comment: 'npu-advise analyze must load neither Probot nor the store: `serve` is imported when it is asked for.',
      severity: 'error',
      from: { path: '^src/cli/analyze\\.ts$' },
      to: { path: 'node_modules/(probot|octokit|@octokit|pg|pg-boss|@electric-sql)/', reachable: true },
    },
    {
      name: 'app-only-from-cli-serve',
      comment: 'Only the entry point may start the App, and only lazily.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/app/' },
      to: { path: '^src/app/', dependencyTypesNot: ['dynamic-import'], pathNot: '^src/app/env\\.ts$' },
    },
    {
      name: 'files-at-the-edge',
      comment: 'Reading and writing files is the business of sources, source, store, cli, app and the template loader.',
      severity: 'error',
      from: { path: '^src/(base|model|facts|replay|rules|remedies|report|commands)/' },
      to: { path: '^(node:)?(fs|child_process|net|http|https|worker_threads)' },
    },
    {
      name: 'nothing-imports-the-lab',
      comment: 'The simulator and the loopback GitHub stand in for the outside world.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(lab|test|scripts|bench)/' },
    },
    {
      name: 'lab-is-independent',
      comment: 'Ground truth must not share code with what it judges.',
      severity: 'error',
      from: { path: '^lab/(simulator|loopback-github)/' },
      to: { path: '^src/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { conditionNames: ['import', 'node', 'default', 'types'] },
    reporterOptions: { text: { highlightFocused: true } },
  },
};
