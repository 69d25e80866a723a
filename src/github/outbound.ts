import { lookup as lookupDns } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { AdviseError } from '../base/errors.ts';
import type { L10n } from '../model/lang.ts';

/** Where GitHub.com keeps artifacts, assets, files and attachments. A GitHub Enterprise Server names its own in NPU_ADVISOR_ARTIFACT_HOSTS. */
export const GITHUB_ARTIFACT_HOSTS = ['*.blob.core.windows.net', '*.githubusercontent.com'];

/** Addresses that are not on the public internet. */
const PRIVATE = new BlockList();
for (const [address, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.addSubnet(address, bits, 'ipv4');
}
for (const [address, bits] of [
  // Loopback, and addresses that hold an IPv4 address, which may be a private one: compatible, translated, NAT64, Teredo, 6to4.
  ['::', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 23],
  ['2002::', 16],
  ['100::', 64],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['5f00::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  PRIVATE.addSubnet(address, bits, 'ipv6');
}

/** True for loopback, private, link-local and other addresses that a download must not reach by surprise. */
export function isPrivateAddress(given: string): boolean {
  // A zone names an interface of this machine.
  const address = given.split('%', 1)[0]!;
  const mapped = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address);
  if (mapped?.[1] !== undefined) return PRIVATE.check(mapped[1], 'ipv4');
  if (mapped?.[2] !== undefined && mapped[3] !== undefined) {
    const [high, low] = [Number.parseInt(mapped[2], 16), Number.parseInt(mapped[3], 16)];
    return PRIVATE.check([high >> 8, high & 255, low >> 8, low & 255].join('.'), 'ipv4');
  }
  const family = isIP(address);
  return family === 0 || PRIVATE.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

export interface OutboundPolicy {
  /** The address may be requested. Throws AdviseError otherwise. */
  check(url: URL): { readonly lookup: LookupFunction | undefined };
}

/**
 * Decides where a download may go. `hosts` are names, `name:port` or `*.suffix`; a host that is spelt out (and the API's own)
 * is trusted with private addresses and plain http, a wildcard never is.
 */
export function createOutboundPolicy(hosts: readonly string[], apiUrl: string): OutboundPolicy {
  const exact = new Set(hosts.filter((host) => !host.startsWith('*')).map((host) => host.toLowerCase()));
  const suffixes = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1).toLowerCase());
  exact.add(new URL(apiUrl).host.toLowerCase());
  // Attachments have addresses on the host people see; of a GitHub Enterprise Server that is the API's own.
  const web = new URL(apiUrl).host.toLowerCase() === 'api.github.com' ? 'github.com' : null;

  const refuse = (what: L10n): AdviseError =>
    new AdviseError(
      'download-refused',
      { en: `the download leads to ${what.en}`, zh: `下载指向${what.zh}` },
      {
        en: 'The operator can allow a storage host with NPU_ADVISOR_ARTIFACT_HOSTS.',
        zh: '运维人员可用 NPU_ADVISOR_ARTIFACT_HOSTS 允许存储主机。',
      },
    );

  /** Resolves as the connection does, so that a name cannot change between check and use. */
  const guardedLookup: LookupFunction = (hostname, options, callback) => {
    lookupDns(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 4);
      const safe = addresses.filter(({ address }) => !isPrivateAddress(address));
      const first = safe[0];
      if (first === undefined) return callback(refuse({ en: 'a private address', zh: '内网地址' }), '', 4);
      if (options.all) return (callback as unknown as (e: null, a: typeof safe) => void)(null, safe);
      callback(null, first.address, first.family);
    });
  };

  return {
    check(url) {
      const name = url.hostname.toLowerCase().replace(/^\[|\]$/g, '');
      if (url.username !== '' || url.password !== '') throw refuse({ en: 'an address with credentials', zh: '带有凭据的地址' });
      if ((exact.has(url.host.toLowerCase()) || exact.has(name)) && (url.protocol === 'https:' || url.protocol === 'http:'))
        return { lookup: undefined };
      if (url.protocol !== 'https:') throw refuse({ en: 'an address that is not https', zh: '非 https 地址' });
      if (isIP(name) !== 0) throw refuse({ en: 'a bare address', zh: '直接写 IP 的地址' });
      if (name === web && url.port === '') return { lookup: guardedLookup };
      if (!suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length))
        throw refuse({ en: 'a host that is not allowed', zh: '不被允许的主机' });
      return { lookup: guardedLookup };
    },
  };
}
