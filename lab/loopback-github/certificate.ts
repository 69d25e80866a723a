/** A private certificate authority and a certificate of it for 127.0.0.1, as companies have them for a GitHub Enterprise Server. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** What a TLS server needs, and what its clients must trust. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

/** DER, as far as a certificate needs it [ITU-T X.690; RFC 5280]. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length =
    body.length < 128
      ? Buffer.from([body.length])
      : body.length < 256
        ? Buffer.from([0x81, body.length])
        : Buffer.from([0x82, body.length >> 8, body.length & 255]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const octets = (body: Buffer): Buffer => der(0x04, body);
const TRUE = der(0x01, Buffer.from([0xff]));
const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'));

function name(common: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(common)))));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`));
}

function pem(body: Buffer): string {
  return `-----BEGIN CERTIFICATE-----\n${body.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

function certify(subject: string, publicKey: KeyObject, issuer: string, issuerKey: KeyObject, extensions: Buffer[]): string {
  const day = 24 * 3600 * 1000;
  const serial = randomBytes(8);
  serial[0] = 1;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_SHA256,
    name(issuer),
    sequence(time(new Date(Date.now() - day)), time(new Date(Date.now() + 30 * day))),
    name(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  return pem(sequence(body, ECDSA_SHA256, der(0x03, Buffer.from([0]), sign('sha256', body, issuerKey))));
}

/** Makes an authority and a certificate of it; neither is kept. */
export function createCertificate(): Certificate {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = 'Loopback private authority';
  const isAuthority = sequence(oid('551d13'), TRUE, octets(sequence(TRUE)));
  const addresses = der(0x87, Buffer.from([127, 0, 0, 1]));
  return {
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: certify('127.0.0.1', server.publicKey, issuer, authority.privateKey, [sequence(oid('551d11'), octets(sequence(addresses)))]),
    ca: certify(issuer, authority.publicKey, issuer, authority.privateKey, [isAuthority]),
  };
}
