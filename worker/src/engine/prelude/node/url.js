// `node:url`: the classes of the platform, files as URLs, and the older functions `parse`, `format` and `resolve`.
0,function (_own, native, captured) {
  'use strict';
  const { Object, TypeError, URL, URLSearchParams, decodeURIComponent } = captured.globals;
  const { coded } = captured;
  const { argumentType, checks } = captured.part('node_errors');
  const { path } = captured.part('node_path');
  const { querystring } = captured.part('node_querystring');

  const fileURLToPath = (value, _options = undefined) => {
    const url = typeof value === 'string' ? new URL(value) : value;
    if (!(url instanceof URL)) throw argumentType('path', ['string', 'URL'], value);
    if (url.protocol !== 'file:') throw coded(new TypeError('The URL must be of scheme file'), 'ERR_INVALID_URL_SCHEME');
    if (url.hostname !== '') throw coded(new TypeError('File URL host must be "localhost" or empty on linux'), 'ERR_INVALID_FILE_URL_HOST');
    if (/%2f/i.test(url.pathname)) {
      throw coded(new TypeError('File URL path must not include encoded / characters'), 'ERR_INVALID_FILE_URL_PATH');
    }
    return decodeURIComponent(url.pathname);
  };
  const pathToFileURL = (value) => {
    checks.string(value, 'path');
    let full = path.resolve(value);
    if (value.endsWith('/') && !full.endsWith('/')) full += '/';
    const codes = { '%': '%25', '\\': '%5C', '\n': '%0A', '\r': '%0D', '\t': '%09', '?': '%3F', '#': '%23' };
    return new URL(`file://${full.replace(/[%\\\n\r\t?#]/g, (character) => codes[character])}`);
  };
  const urlToHttpOptions = (url) => {
    const { hostname, pathname, port, username, password, search } = url;
    const options = {
      __proto__: null, ...url, protocol: url.protocol, hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
      hash: url.hash, search, pathname, path: `${pathname || ''}${search || ''}`, href: url.href,
    };
    if (port !== '') options.port = +port;
    if (username || password) options.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return options;
  };

  // The older functions.
  function Url() {
    for (const name of ['protocol', 'slashes', 'auth', 'host', 'port', 'hostname', 'hash', 'search', 'query', 'pathname', 'path', 'href']) {
      this[name] = null;
    }
  }
  const slashed = new captured.globals.Set(['http', 'https', 'ftp', 'gopher', 'file', 'ws', 'wss']);
  const unsafe = /[\t\n\r "'<>\\^`{|}]/g;
  const quote = (text) => text.replace(unsafe, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  const hostOf = (host) => {
    const colon = host.match(/:(\d*)$/);
    return colon ? [host.slice(0, colon.index), colon[1] === '' ? null : colon[1]] : [host, null];
  };
  Url.prototype.parse = function (text, parseQuery = false, slashesDenoteHost = false) {
    if (typeof text !== 'string') throw argumentType('url', 'string', text);
    let rest = text.trim();
    const end = rest.search(/[?#]/);
    const before = end === -1 ? rest : rest.slice(0, end);
    rest = before.replace(/\\/g, '/') + (end === -1 ? '' : rest.slice(end));
    const protocol = rest.match(/^[a-z0-9.+-]+:/i)?.[0];
    if (protocol !== undefined) {
      this.protocol = protocol.toLowerCase();
      rest = rest.slice(protocol.length);
    }
    const name = this.protocol?.slice(0, -1);
    const script = name === 'javascript';
    const slashes = rest.startsWith('//') && (slashesDenoteHost || protocol !== undefined || /^\/\/[^@/]+@[^@/]+/.test(rest));
    if (!script && slashes) {
      this.slashes = true;
      rest = rest.slice(2);
    }
    if (!script && (slashes || (protocol !== undefined && !slashed.has(name)))) {
      const stop = rest.search(/[/?#]/);
      let authority = stop === -1 ? rest : rest.slice(0, stop);
      let after = stop === -1 ? '' : rest.slice(stop);
      const at = authority.lastIndexOf('@');
      if (at !== -1) {
        this.auth = decodeURIComponent(authority.slice(0, at));
        authority = authority.slice(at + 1);
      }
      const bad = authority.search(/[\t\n\r "%'*;<>\\^`{|}]/);
      if (bad !== -1) {
        after = authority.slice(bad) + after;
        authority = authority.slice(0, bad);
      }
      [this.hostname, this.port] = hostOf(authority);
      const bracketed = this.hostname.startsWith('[') && this.hostname.endsWith(']');
      this.hostname = this.hostname.toLowerCase();
      if (/[^\0-\x7f]/.test(this.hostname)) this.hostname = domainToASCII(this.hostname);
      this.host = `${this.hostname}${this.port === null ? '' : `:${this.port}`}`;
      if (bracketed) this.hostname = this.hostname.slice(1, -1);
      rest = after;
    }
    if (!script) rest = quote(rest);
    const hash = rest.indexOf('#');
    if (hash !== -1) {
      this.hash = rest.slice(hash);
      rest = rest.slice(0, hash);
    }
    const query = rest.indexOf('?');
    if (query !== -1) {
      this.search = rest.slice(query);
      this.query = parseQuery ? querystring.parse(this.search.slice(1)) : this.search.slice(1);
      rest = rest.slice(0, query);
    } else if (parseQuery) {
      this.search = null;
      this.query = { __proto__: null };
    }
    if (rest !== '') this.pathname = rest;
    else if (slashed.has(name) && this.hostname) this.pathname = '/';
    if (this.pathname !== null || this.search !== null) this.path = (this.pathname ?? '') + (this.search ?? '');
    this.href = this.format();
    return this;
  };
  Url.prototype.format = function () {
    let auth = this.auth || '';
    if (auth) auth = `${captured.globals.encodeURIComponent(auth).replace(/%3A/i, ':')}@`;
    let protocol = this.protocol || '';
    let pathname = this.pathname || '';
    let hash = this.hash || '';
    let host = '';
    if (this.host) {
      host = auth + this.host;
    } else if (this.hostname) {
      host = auth + (this.hostname.includes(':') && !this.hostname.startsWith('[') ? `[${this.hostname}]` : this.hostname);
      if (this.port) host += `:${this.port}`;
    }
    let query = '';
    if (this.query !== null && typeof this.query === 'object') query = querystring.stringify(this.query);
    let search = this.search || (query && `?${query}`) || '';
    if (protocol && !protocol.endsWith(':')) protocol += ':';
    pathname = pathname.replace(/[?#]/g, (character) => (character === '?' ? '%3F' : '%23'));
    if (this.slashes || slashed.has(protocol.slice(0, -1))) {
      if (this.slashes || host !== '') {
        if (pathname && !pathname.startsWith('/')) pathname = `/${pathname}`;
        host = `//${host}`;
      } else if (protocol === 'file:') {
        host = '//';
      }
    }
    search = search.replace(/#/g, '%23');
    if (hash && !hash.startsWith('#')) hash = `#${hash}`;
    if (search && !search.startsWith('?')) search = `?${search}`;
    return `${protocol}${host}${pathname}${search}${hash}`;
  };
  const parse = (value, parseQuery, slashesDenoteHost) =>
    (value instanceof Url ? value : new Url().parse(value, parseQuery, slashesDenoteHost));
  const format = (value, options = undefined) => {
    if (typeof value === 'string') return parse(value).format();
    if (value === null || typeof value !== 'object') throw argumentType('urlObject', ['object', 'string'], value);
    if (!(value instanceof URL)) return Url.prototype.format.call(value);
    const copy = new URL(value.href);
    if (!fragment) copy.hash = '';
    if (!search) copy.search = '';
    if (!auth) { copy.username = ''; copy.password = ''; }
    return copy.href;
  };
  const withoutDots = (pathname) => {
    const absolute = pathname.startsWith('/');
    const list = [];
    const names = pathname.split('/');
    names.forEach((name, index) => {
      const last = index === names.length - 1;
      if (name === '..') { if (list.length > (absolute ? 1 : 0)) list.pop(); if (last) list.push(''); } else if (name === '.') { if (last) list.push(''); } else list.push(name);
    });
    return list.join('/');
  };
  const resolveObject = (from, to) => {
    const base = parse(from, false, true);
    const target = parse(to, false, true);
    const result = new Url();
    Object.assign(result, base);
    result.hash = target.hash;
    if (target.href === '') { result.href = result.format(); return result; }
    if (target.protocol && target.protocol !== base.protocol) {
      Object.assign(result, target);
      if (result.pathname !== null && result.host !== null) result.pathname = withoutDots(result.pathname);
    } else if (target.host !== null || (target.slashes && !target.protocol)) {
      Object.assign(result, target, { protocol: base.protocol });
      if (result.pathname !== null) result.pathname = withoutDots(result.pathname);
    } else if (target.pathname !== null) {
      const folder = (base.pathname ?? '').replace(/[^/]*$/, '');
      const joined = target.pathname.startsWith('/') ? target.pathname : `${folder || (base.host ? '/' : '')}${target.pathname}`;
      result.pathname = withoutDots(joined);
      [result.search, result.query] = [target.search, target.query];
    } else if (target.search !== null) {
      [result.search, result.query] = [target.search, target.query];
    }
    if (result.pathname !== null || result.search !== null) result.path = (result.pathname ?? '') + (result.search ?? '');
    result.href = result.format();
    return result;
  };
  Url.prototype.resolve = function (to) { return resolveObject(this, to).format(); };
  Url.prototype.resolveObject = function (to) { return resolveObject(this, to); };
  const hostnameOf = (domain) => {
    try { return new URL(`ws://${domain}`).hostname; } catch { return ''; }
  };
  const domainToASCII = (domain) => hostnameOf(`${domain}`);
  const domainToUnicode = (domain) => native.domainToUnicode?.(hostnameOf(`${domain}`)) ?? hostnameOf(`${domain}`);
  return {
    url: {
      Url, parse, resolve: (from, to) => resolveObject(from, to).format(), resolveObject, format, URL, URLSearchParams, domainToASCII,
      domainToUnicode, pathToFileURL, fileURLToPath, urlToHttpOptions,
    },
  };
}
