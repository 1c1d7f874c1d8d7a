// Modules that show what exists elsewhere: `node:buffer`, `console`, `module`, `process`; and `punycode`.
0,function (_own, native, captured) {
  'use strict';
  const { Buffer, Math, Object, RangeError, String, console, process } = captured.globals;
  const { argumentValue, argumentType, error, unavailable } = captured.part('node_errors');
  const G = captured.globals;
  const lazy = (object, names) => {
    for (const name of names) Object.defineProperty(object, name, { get: () => G[name], enumerable: true, configurable: true });
    return object;
  };

  const bytesOf = (value) => {
    if (G.ArrayBuffer.isView(value)) return new G.Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof G.ArrayBuffer) return new G.Uint8Array(value);
    throw argumentType('input', ['ArrayBuffer', 'Buffer', 'TypedArray'], value);
  };
  const constants = { MAX_LENGTH: 2 ** 31 - 1, MAX_STRING_LENGTH: 2 ** 30 - 1 };
  const buffer = lazy({
    Buffer, SlowBuffer: (size) => Buffer.alloc(size), constants, kMaxLength: constants.MAX_LENGTH, kStringMaxLength: constants.MAX_STRING_LENGTH,
    INSPECT_MAX_BYTES: 50,
    isUtf8: (value) => { try { native.decode(bytesOf(value), 'utf8', true); return true; } catch { return false; } },
    isAscii: (value) => bytesOf(value).every((byte) => byte < 128),
    transcode: (source, from, to) => Buffer.from(native.decode(bytesOf(source), from, false), to),
    resolveObjectURL: () => undefined,
  }, ['Blob', 'File', 'atob', 'btoa']);

  // Modules of files.
  const builtins = [...native.nodeModules(), ...captured.hostModuleNames].sort();
  const isBuiltin = (name) => builtins.includes(String(name).replace(/^node:/, ''));
  const createRequire = (filename) => {
    let path = filename;
    if (path instanceof G.URL || (typeof path === 'string' && path.startsWith('file:'))) path = captured.part('node_url').url.fileURLToPath(path);
    if (typeof path !== 'string' || path === '') throw argumentValue('filename', filename, 'must be a file URL object, file URL string, or absolute path string');
    return captured.makeRequire(path.replace(/^\/+/, ''), captured.requireCache);
  };
  const { Module } = captured;
  Object.assign(Module, {
    Module, builtinModules: builtins, createRequire, isBuiltin, _cache: captured.requireCache, _extensions: { '.js': undefined, '.json': undefined, '.node': undefined },
    _nodeModulePaths: captured.nodeModulePaths, _resolveFilename: (id, parent) => native.resolve(id, parent?.filename ?? ''),
    _load: (id, parent) => native.require(id, parent?.filename ?? ''), wrap: (text) => `(function (exports, require, module, __filename, __dirname) { ${text}\n});`,
    syncBuiltinESMExports: () => {}, findSourceMap: () => undefined,
    register: () => { throw unavailable('module.register', 'modules are found by the template\'s resolver'); },
  });

  // RFC 3492.
  const MAX = 2147483647;
  const overflow = () => new RangeError('Overflow: input needs wider integers to process');
  const adapt = (delta, count, first) => {
    let k = 0;
    let left = first ? Math.floor(delta / 700) : delta >> 1;
    left += Math.floor(left / count);
    for (; left > 455; k += 36) left = Math.floor(left / 35);
    return Math.floor(k + (36 * left) / (left + 38));
  };
  const ucs2 = { decode: (text) => [...text].map((character) => character.codePointAt(0)), encode: (codes) => String.fromCodePoint(...codes) };
  const decode = (input) => {
    const output = [];
    const end = Math.max(input.lastIndexOf('-'), 0);
    for (let i = 0; i < end; i++) {
      if (input.charCodeAt(i) >= 0x80) throw new RangeError('Illegal input >= 0x80 (not a basic code point)');
      output.push(input.charCodeAt(i));
    }
    let [n, i, bias] = [128, 0, 72];
    for (let at = end > 0 ? end + 1 : 0; at < input.length;) {
      const before = i;
      for (let weight = 1, k = 36; ; k += 36) {
        const unit = at < input.length ? input[at++] : '';
        const digit = '0123456789'.includes(unit) && unit !== '' ? 26 + +unit : unit === '' ? 99 : unit.toLowerCase().charCodeAt(0) - 97;
        if (digit < 0 || digit >= 36) throw new RangeError('Invalid input');
        i += digit * weight;
        if (i > MAX) throw overflow();
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (digit < t) break;
        weight *= 36 - t;
      }
      const count = output.length + 1;
      bias = adapt(i - before, count, before === 0);
      n += Math.floor(i / count);
      if (n > 0x10FFFF) throw overflow();
      i %= count;
      output.splice(i++, 0, n);
    }
    return String.fromCodePoint(...output);
  };
  const encode = (text) => {
    const codes = ucs2.decode(text);
    const basic = codes.filter((code) => code < 0x80);
    let output = basic.map((code) => String.fromCharCode(code)).join('');
    let [n, delta, bias, done] = [128, 0, 72, basic.length];
    if (done > 0) output += '-';
    const letter = (digit) => String.fromCharCode(digit < 26 ? digit + 97 : digit + 22);
    while (done < codes.length) {
      const next = Math.min(...codes.filter((code) => code >= n));
      delta += (next - n) * (done + 1);
      if (delta > MAX) throw overflow();
      n = next;
      for (const code of codes) {
        if (code < n) delta++;
        if (code !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          output += letter(t + ((q - t) % (36 - t)));
          q = Math.floor((q - t) / (36 - t));
        }
        output += letter(q);
        bias = adapt(delta, done + 1, done === basic.length);
        delta = 0;
        done++;
      }
      delta++;
      n++;
    }
    return output;
  };
  const labels = (domain, change) => {
    const at = domain.lastIndexOf('@');
    const host = domain.slice(at + 1).replace(/[\u3002\uFF0E\uFF61]/g, '.').split('.').map(change).join('.');
    return domain.slice(0, at + 1) + host;
  };
  const punycode = {
    version: '2.1.0', ucs2, decode, encode,
    toASCII: (domain) => labels(domain, (label) => (/[^\0-\x7F]/.test(label) ? `xn--${encode(label)}` : label)),
    toUnicode: (domain) => labels(domain, (label) => (/^xn--/.test(label) ? decode(label.slice(4).toLowerCase()) : label)),
  };
  const consoleModule = Object.assign(Object.create(Object.getPrototypeOf(console)), console);
  consoleModule.Console = class Console {
    constructor(out, err = undefined) {
      const text = (args) => `${captured.part('node_util').util.format(...args)}\n`;
      for (const name of ['log', 'info', 'debug', 'dir', 'table']) this[name] = (...args) => { stdout.write(text(args)); };
      for (const name of ['error', 'warn', 'trace']) this[name] = (...args) => { stderr.write(text(args)); };
    }
  };
  return { buffer, console: consoleModule, module: Module, process, punycode };
}
