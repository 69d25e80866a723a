/* What is shipped to be run by others: image, compose file, chart, package, workflow of releases. Read, rendered and judged, not run here. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { validateWorkflow } from '@action-validator/core';
import { describe, expect, it, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { VARIABLES } from '../../src/app/env.ts';
import { WEBHOOK_PATH } from '../../src/github/front.ts';
import { Chart } from './render-chart.ts';

// The validator says of every `paths` that it does not check patterns.
vi.spyOn(console, 'warn').mockImplementation(() => undefined);

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const NAMES = new Set<string>(VARIABLES.map(({ name }) => name));
const { version } = JSON.parse(read('package.json')) as { version: string };

describe('the image', () => {
  const dockerfile = read('deploy/Dockerfile');
  const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));

  it('is made by the steps that run without Docker, on a base by tag from the public registry', () => {
    expect(dockerfile).toContain('RUN sh deploy/image-steps.sh /src /app');
    for (const [, base] of dockerfile.matchAll(/^FROM (\S+)/gm)) expect(base).toBe('node:24-bookworm-slim');
    expect(last).not.toMatch(/^RUN .*(npm|apt)/m);
  });

  it('runs as a user by number, in production, with a health check and a data folder', () => {
    expect(last).toMatch(/^USER 1000:1000$/m);
    expect(last).toMatch(/NODE_ENV=production/);
    expect(last).toMatch(/^HEALTHCHECK /m);
    expect(last).toMatch(/^VOLUME \/data$/m);
    for (const [, name] of last.matchAll(/\b([A-Z_]{4,})=/g)) expect(NAMES.has(name!) || name === 'NODE_ENV', name).toBe(true);
  });

  it('gets nothing of a working folder but what the steps copy', () => {
    const [first, ...kept] = read('deploy/Dockerfile.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(first).toBe('*');
    const steps = read('deploy/image-steps.sh');
    const copied = /^for path in (package\.json .+); do$/m.exec(steps)![1]!.split(' ');
    expect(kept.map((line) => line.slice(1)).sort()).toEqual([...copied, 'deploy/image-steps.sh'].sort());
    for (const script of ['deploy/image-steps.sh', 'deploy/smoke.sh']) execFileSync('sh', ['-n', join(ROOT, script)]);
  });
});

interface Service {
  image: string;
  command?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  ports?: string[];
  environment: Record<string, string>;
  env_file?: string[];
  healthcheck: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
}

describe('the compose file', () => {
  const { services } = parse(read('deploy/compose.yml'), { merge: true }) as { services: Record<string, Service> };

  it('runs web and workers on one PostgreSQL, which must be healthy first', () => {
    expect(Object.keys(services)).toEqual(['web', 'worker', 'postgres']);
    for (const [name, command] of [
      ['web', 'serve'],
      ['worker', 'worker'],
    ] as const) {
      const service = services[name]!;
      expect(service.command).toEqual([command]);
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], depends_on: { postgres: { condition: 'service_healthy' } } });
      expect(service.environment.DATABASE_URL).toContain('@postgres:5432/');
      expect(service.healthcheck.test.join(' ')).toContain('/readyz');
    }
    expect(services.postgres!.healthcheck.test).toContain('pg_isready');
  });

  it('holds no secret and publishes nothing but the webhook, on loopback', () => {
    for (const { ports = [] } of Object.values(services)) for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:3000:/);
    expect(read('deploy/compose.yml')).not.toMatch(/PASSWORD: +[^$]/);
    const example = [...read('deploy/example.env').matchAll(/^([A-Z_]+)=(.*)$/gm)];
    expect(example.map(([, name]) => name)).toEqual(['APP_ID', 'PRIVATE_KEY', 'WEBHOOK_SECRET', 'POSTGRES_PASSWORD']);
    for (const [, , value] of example) expect(value).toBe('');
  });
});

interface Manifest {
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  spec: Record<string, never> & {
    selector: { matchLabels: Record<string, string> } & Record<string, string>;
    template: { metadata: { labels: Record<string, string>; annotations?: Record<string, string> }; spec: PodSpec };
  };
}
interface PodSpec {
  securityContext: Record<string, unknown>;
  terminationGracePeriodSeconds: number;
  volumes: { name: string; emptyDir?: { sizeLimit: string }; configMap?: unknown }[];
  containers: {
    image: string;
    args: string[];
    securityContext: Record<string, unknown>;
    env: { name: string; value: string }[];
    envFrom: { secretRef: { name: string } }[];
    ports: { name: string; containerPort: number }[];
    volumeMounts: { name: string; mountPath: string }[];
    resources: { limits: Record<string, string> };
    [probe: string]: unknown;
  }[];
}

describe('the chart', () => {
  const FOLDER = 'deploy/helm/npu-advisor';
  const chart = new Chart();
  const templates = readdirSync(join(ROOT, FOLDER, 'templates'));
  for (const file of templates.filter((name) => name.endsWith('.tpl'))) chart.define(read(`${FOLDER}/templates/${file}`));
  const about = parse(read(`${FOLDER}/Chart.yaml`)) as { name: string; version: string; appVersion: string };
  const values = parse(read(`${FOLDER}/values.yaml`)) as Record<string, Record<string, unknown>>;

  function render(over: Record<string, unknown> = {}): Manifest[] {
    const dot = {
      Values: { ...values, ...over },
      Chart: { Name: about.name, Version: about.version, AppVersion: about.appVersion },
      Release: { Name: 'ci', Namespace: 'tools', Service: 'Helm' },
    };
    return templates
      .filter((name) => name.endsWith('.yaml'))
      .flatMap((name) => {
        const documents = parseAllDocuments(chart.render(read(`${FOLDER}/templates/${name}`), dot), { strict: true, uniqueKeys: true });
        for (const { errors, warnings } of documents as Exclude<typeof documents, { empty: true }>)
          expect([...errors, ...warnings], name).toEqual([]);
        return (documents as Exclude<typeof documents, { empty: true }>).map((document) => document.toJS() as Manifest | null);
      })
      .filter((manifest) => manifest !== null);
  }
  const of = (manifests: readonly Manifest[], kind: string): Manifest[] => manifests.filter((manifest) => manifest.kind === kind);

  it('says the version it runs', () => {
    expect(about.appVersion).toBe(version);
  });

  it('renders servers and workers that no one has to trust', () => {
    const manifests = render();
    expect(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'Deployment ci-web',
      'Deployment ci-worker',
      'PodDisruptionBudget ci-web',
      'PodDisruptionBudget ci-worker',
      'Service ci',
    ]);
    for (const { spec } of of(manifests, 'Deployment')) {
      const pod = spec.template.spec;
      const [container] = pod.containers as [PodSpec['containers'][number]];
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.image).toBe(`npu-advisor:${version}`);
      expect(container.envFrom).toEqual([{ secretRef: { name: 'npu-advisor' } }]);
      expect(container.resources.limits.memory).toBeDefined();
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
        expect((container[probe] as { httpGet: { port: string } }).httpGet.port).toBe('metrics');
      const volumes = pod.volumes.map(({ name }) => name);
      for (const { name } of container.volumeMounts) expect(volumes).toContain(name);
      expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/data', '/tmp']);
      for (const { name } of container.env) expect(NAMES.has(name), name).toBe(true);
      // What a job may still do after SIGTERM.
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(
        Number(VARIABLES.find(({ name }) => name === 'NPU_ADVISOR_DRAIN_S')!.default) + 15,
      );
    }
  });

  it('selects by labels that the pods have, and leads to the webhook only', () => {
    const manifests = render();
    const pods = of(manifests, 'Deployment').map(({ spec }) => spec.template.metadata.labels);
    const matching = (selector: Record<string, string>) =>
      pods.filter((labels) => Object.entries(selector).every(([key, value]) => labels[key] === value));
    for (const { spec } of [...of(manifests, 'Deployment'), ...of(manifests, 'PodDisruptionBudget')])
      expect(matching(spec.selector.matchLabels)).toHaveLength(1);
    const [service] = of(manifests, 'Service');
    expect(matching(service!.spec.selector)).toEqual([expect.objectContaining({ 'app.kubernetes.io/component': 'web' })]);
    expect((service!.spec as unknown as { ports: unknown[] }).ports).toEqual([{ name: 'http', port: 80, targetPort: 'http' }]);
  });

  it('takes what people set', () => {
    const manifests = render({
      ingress: { enabled: true, className: 'nginx', annotations: { a: 'b' }, host: 'advice.example', tlsSecret: 'tls' },
      env: { GHE_HOST: 'ghe.example', NPU_ADVISOR_ANALYSES: 2 },
      caConfigMap: 'authorities',
      imagePullSecrets: [{ name: 'pull' }],
      image: { repository: 'registry.example/npu-advisor', tag: '9.9.9', pullPolicy: 'Always' },
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'k', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
    });
    const [web] = of(manifests, 'Deployment');
    const pod = web!.spec.template.spec as PodSpec & Record<string, unknown>;
    expect(pod.containers[0]!.image).toBe('registry.example/npu-advisor:9.9.9');
    expect(pod.containers[0]!.env).toEqual([
      { name: 'NPU_ADVISOR_METRICS_HOST', value: '0.0.0.0' },
      { name: 'GHE_HOST', value: 'ghe.example' },
      { name: 'NPU_ADVISOR_ANALYSES', value: '2' },
      { name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.pem' },
    ]);
    expect(pod.volumes.find(({ name }) => name === 'ca')?.configMap).toEqual({ name: 'authorities' });
    expect(pod).toMatchObject({ nodeSelector: { disk: 'ssd' }, imagePullSecrets: [{ name: 'pull' }], tolerations: [{ key: 'k' }] });
    const [ingress] = of(manifests, 'Ingress');
    expect(ingress!.spec).toMatchObject({
      ingressClassName: 'nginx',
      tls: [{ hosts: ['advice.example'], secretName: 'tls' }],
      rules: [
        {
          host: 'advice.example',
          http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'ci', port: { name: 'http' } } } }] },
        },
      ],
    });
    expect(read(`${FOLDER}/templates/NOTES.txt`)).toContain(WEBHOOK_PATH);
  });
});

describe('the package', () => {
  const manifest = JSON.parse(read('package.json')) as {
    files: string[];
    bin: Record<string, string>;
    exports: Record<string, string | Record<string, string>>;
    publishConfig: unknown;
  };

  it('holds what it needs where it is installed, and nothing else', () => {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: ROOT,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as [{ files: { path: string }[] }];
    const paths = packed.files.map(({ path }) => path);
    for (const path of [
      'bin/npu-advise.mjs',
      'app.yml',
      'LICENSE',
      'README.md',
      'schema/report.schema.json',
      'docs/rules/dataloader-stall.md',
      'docs/zh/rules/dataloader-stall.md',
    ])
      expect(paths).toContain(path);
    for (const path of paths) {
      expect(path).toMatch(
        /^(bin|dist|docs\/rules|docs\/zh\/rules|schema|templates)\/|^(package\.json|LICENSE|README(\.\w+)?\.md|app\.yml|CHANGELOG\.md)$/,
      );
      expect(path).not.toMatch(/\.(map|pem|env|test\.\w+|tsbuildinfo)$|(^|\/)(\.env|node_modules|test|lab)(\/|$)/);
    }
  });

  it('names files that the build writes', () => {
    const sources = new Set(['./dist/index.js', './dist/index.d.ts']);
    const { '.': main } = manifest.exports as { '.': Record<string, string> };
    for (const path of Object.values(main)) expect(sources).toContain(path);
    expect(read('src/index.ts')).toContain('export');
    expect(manifest.bin).toEqual({ 'npu-advise': 'bin/npu-advise.mjs' });
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
  });

  it('depends on nothing under a licence that asks more than to be named', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dev?: boolean; license?: string }> };
    const allowed = new Set([
      'MIT',
      'ISC',
      'Apache-2.0',
      'BSD-2-Clause',
      'BSD-3-Clause',
      '0BSD',
      'CC0-1.0',
      'BlueOak-1.0.0',
      '(MIT OR CC0-1.0)',
    ]);
    const others = Object.entries(packages).filter(
      ([path, { dev, license }]) => path !== '' && dev !== true && !allowed.has(license ?? ''),
    );
    expect(others).toEqual([]);
  });

  it('has a bill of materials of production only', () => {
    const bom = JSON.parse(execFileSync(process.execPath, [join(ROOT, 'scripts/sbom.mjs')], { encoding: 'utf8', maxBuffer: 64 << 20 })) as {
      bomFormat: string;
      metadata: { component: { name: string; version: string } };
      components: { name: string; purl: string; group?: string }[];
    };
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'npu-advisor', version } } });
    const names = bom.components.map(({ purl }) => purl);
    expect(names.some((purl) => purl.startsWith('pkg:npm/probot@'))).toBe(true);
    expect(names.some((purl) => /pkg:npm\/(vitest|typescript)@/.test(purl))).toBe(false);
  });
});

describe('a release', () => {
  const text = read('.github/workflows/release.yml');
  const workflow = parse(text) as {
    on: { push: { tags: string[] } };
    permissions: Record<string, string>;
    jobs: Record<string, { needs?: string | string[]; permissions?: Record<string, string>; steps: { uses?: string; run?: string }[] }>;
  };

  it('is a valid workflow with pinned actions, least rights and no text of others in its commands', () => {
    const problems = (validateWorkflow(text) as { errors?: unknown[] } | null)?.errors ?? [];
    expect(problems).toEqual([]);
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const { steps } of Object.values(workflow.jobs))
      for (const { uses, run } of steps) {
        if (uses !== undefined) expect(uses).toMatch(/^[\w.-]+\/[\w.-]+@[0-9a-f]{40}$/);
        if (run === undefined) continue;
        expect(run).not.toContain('${{');
        execFileSync('bash', ['-n'], { input: run, stdio: ['pipe', 'ignore', 'pipe'] });
      }
    expect(text).not.toMatch(/pull_request_target|NPM_TOKEN:\s*\w/);
  });

  it('publishes only what was tested, by a tag that is the version', () => {
    expect(workflow.on.push.tags).toEqual(['v*.*.*']);
    for (const [name, { needs }] of Object.entries(workflow.jobs)) if (name !== 'test') expect([needs].flat(), name).toContain('test');
    expect(text).toContain('npm publish --provenance');
    expect(workflow.jobs.npm!.permissions).toMatchObject({ 'id-token': 'write', contents: 'read' });
    expect(workflow.jobs.image!.permissions).toMatchObject({ packages: 'write' });
  });

  it('is told of in the change log', () => {
    const log = read('CHANGELOG.md');
    expect(log).toMatch(/^# Changelog\n/);
    expect(log).toMatch(/^## \[Unreleased\]$/m);
    for (const [, heading] of log.matchAll(/^### (.+)$/gm))
      expect(['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']).toContain(heading);
  });
});
