// `node:querystring`.
0,function (_own, native, captured) {
  'use strict';
  const { Array, Buffer, Number, Object, Reflect, String, URIError, decodeURIComponent, encodeURIComponent } = captured.globals;
  const { coded } = captured;
  const escape = (value) => {
    const text = typeof value === 'string' ? value : typeof value === 'object' ? String(value) : `${value}`;
    try {
      return encodeURIComponent(text);
    } catch {
      throw coded(new URIError('URI malformed'), 'ERR_INVALID_URI');
    }
  };
  const unescapeBuffer = (text) => {
    const bytes = [];
    for (const byte of native.encode(text, 'latin1')) bytes.push(byte);
    const out = [];
    for (let i = 0; i < bytes.length; i++) {
      const hex = bytes[i] === 37 ? String.fromCharCode(bytes[i + 1], bytes[i + 2]) : '';
      if (/^[0-9a-f]{2}$/i.test(hex)) { out.push(Number(`0x${hex}`)); i += 2; } else out.push(bytes[i]);
    }
    return Buffer.from(out);
  };
  const unescape = (text) => {
    try { return decodeURIComponent(text); } catch { return unescapeBuffer(`${text}`).toString(); }
  };
  const primitive = (value) => {
    if (typeof value === 'string') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return `${value}`;
    if (typeof value === 'bigint' || typeof value === 'boolean') return `${value}`;
    return '';
  };
  const stringify = (object, sep = '&', eq = '=', options = undefined) => {
    const encode = typeof options?.encodeURIComponent === 'function' ? options.encodeURIComponent : querystring.escape;
    if (object === null || typeof object !== 'object') return '';
    const parts = [];
    for (const key of Object.keys(object)) {
      const name = encode(primitive(key));
      const values = Array.isArray(object[key]) ? object[key] : [object[key]];
      for (const value of values) parts.push(`${name}${eq || '='}${encode(primitive(value))}`);
    }
    return parts.join(sep || '&');
  };
  const parse = (text, sep = '&', eq = '=', options = undefined) => {
    const result = { __proto__: null };
    if (typeof text !== 'string' || text === '') return result;
    const decode = typeof options?.decodeURIComponent === 'function' ? options.decodeURIComponent : querystring.unescape;
    const safely = (part) => {
      const plain = part.replace(/\+/g, ' ');
      try { return decode(plain); } catch { return unescape(plain); }
    };
    const most = typeof options?.maxKeys === 'number' ? options.maxKeys : 1000;
    let pairs = text.split(sep || '&');
    if (most > 0) pairs = pairs.slice(0, most);
    for (const pair of pairs) {
      if (pair === '') continue;
      const at = pair.indexOf(eq || '=');
      const name = safely(at === -1 ? pair : pair.slice(0, at));
      const value = at === -1 ? '' : safely(pair.slice(at + (eq || '=').length));
      if (Reflect.getOwnPropertyDescriptor(result, name) === undefined) result[name] = value;
      else if (Array.isArray(result[name])) result[name].push(value);
      else result[name] = [result[name], value];
    }
    return result;
  };
  const querystring = { unescapeBuffer, unescape, escape, stringify, encode: stringify, parse, decode: parse };
  return { querystring };
}
