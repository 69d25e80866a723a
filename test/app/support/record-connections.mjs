/* Preloaded into a server process and its threads: says on stderr where every connection goes and which names are looked up. */
import dns from 'node:dns';
import { writeSync } from 'node:fs';
import net from 'node:net';

const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function (...args) {
  const [first] = Array.isArray(args[0]) ? args[0] : args;
  const { host, port, path } = typeof first === 'object' && first !== null ? first : { port: first, host: args[1] };
  writeSync(2, `CONNECT ${path ?? `${host ?? 'localhost'}:${port}`}\n`);
  return connect.apply(this, args);
};
const { lookup } = dns;
dns.lookup = (name, ...rest) => {
  writeSync(2, `LOOKUP ${name}\n`);
  return lookup(name, ...rest);
};
