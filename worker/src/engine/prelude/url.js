// URL and URLSearchParams. The parser is native: `parse(text, base)` and `set(href, part, value)` give the serialized URL with the
// positions of its parts, or undefined; `readForm` and `writeForm` convert application/x-www-form-urlencoded.
0,function (native, _base, captured) {
  'use strict';
  const { TypeError, Symbol, Object, Reflect } = captured.globals;
  const { defineProperty, getPrototypeOf } = Object;
  const { coded, wellFormed } = captured;
  const { enumerable, invalidThis, missing, tag } = captured.part('classes');
  // Positions within the serialized URL.
  const SCHEME = 1, USER = 2, USER_END = 3, PASSWORD = 4, PASSWORD_END = 5, HOST = 6, HOST_END = 7, PORT = 8, PORT_END = 9,
    PATH = 10, PATH_END = 11, QUERY_END = 12;
  const invalidUrl = (input, base) => {
    const error = coded(new TypeError('Invalid URL'), 'ERR_INVALID_URL');
    error.input = input;
    if (base !== undefined) error.base = base;
    return error;
  };

  // How the two classes reach each other's private fields.
  let replaceList;
  let listOf;
  let bindParams;

  class URLSearchParams {
    // Names and values in turn.
    #list = [];
    #url;
    constructor(init = undefined) {
      if (init === undefined || init === null) return;
      if (typeof init === 'object' || typeof init === 'function') {
        const iterate = init[Symbol.iterator];
        if (typeof init === 'object' && #list in init && iterate === entries) {
          this.#list = [...init.#list];
        } else if (iterate !== undefined && iterate !== null) {
          if (typeof iterate !== 'function') throw coded(new TypeError('Query pairs must be iterable'), 'ERR_ARG_NOT_ITERABLE');
          for (const pair of init) {
            if (pair === null || (typeof pair !== 'object' && typeof pair !== 'function') ||
                typeof pair[Symbol.iterator] !== 'function') {
              throw coded(new TypeError('Each query pair must be an iterable [name, value] tuple'), 'ERR_INVALID_TUPLE');
            }
            const values = [...pair];
            if (values.length !== 2) {
              throw coded(new TypeError('Each query pair must be an iterable [name, value] tuple'), 'ERR_INVALID_TUPLE');
            }
            this.#list.push(wellFormed(values[0]), wellFormed(values[1]));
          }
        } else {
          // A record: a name that occurs twice after its conversion keeps its first position.
          const seen = { __proto__: null };
          for (const key of Reflect.ownKeys(init)) {
            if (typeof key === 'symbol' || !Reflect.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
            const name = wellFormed(key);
            const value = wellFormed(init[key]);
            if (seen[name] !== undefined) this.#list[seen[name]] = value;
            else seen[name] = this.#list.push(name, value) - 1;
          }
        }
        return;
      }
      const text = wellFormed(init);
      this.#list = native.readForm(text[0] === '?' ? text.slice(1) : text);
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#list in value)) throw invalidThis('URLSearchParams');
      return value;
    }
    #changed() { if (this.#url !== undefined) bindParams.changed(this.#url, this.#text()); }
    #text() { return native.writeForm(this.#list); }
    get size() { return URLSearchParams.#of(this).#list.length / 2; }
    append(name, value) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 2) throw missing('name', 'value');
      self.#list.push(wellFormed(name), wellFormed(value));
      self.#changed();
    }
    delete(name, value = undefined) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 1) throw missing('name');
      const wanted = wellFormed(name);
      const also = value === undefined ? undefined : wellFormed(value);
      const list = self.#list;
      const kept = [];
      for (let i = 0; i < list.length; i += 2) {
        if (list[i] !== wanted || (also !== undefined && list[i + 1] !== also)) kept.push(list[i], list[i + 1]);
      }
      self.#list = kept;
      self.#changed();
    }
    get(name) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 1) throw missing('name');
      const wanted = wellFormed(name);
      for (let i = 0; i < self.#list.length; i += 2) if (self.#list[i] === wanted) return self.#list[i + 1];
      return null;
    }
    getAll(name) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 1) throw missing('name');
      const wanted = wellFormed(name);
      const values = [];
      for (let i = 0; i < self.#list.length; i += 2) if (self.#list[i] === wanted) values.push(self.#list[i + 1]);
      return values;
    }
    has(name, value = undefined) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 1) throw missing('name');
      const wanted = wellFormed(name);
      const also = value === undefined ? undefined : wellFormed(value);
      for (let i = 0; i < self.#list.length; i += 2) {
        if (self.#list[i] === wanted && (also === undefined || self.#list[i + 1] === also)) return true;
      }
      return false;
    }
    set(name, value) {
      const self = URLSearchParams.#of(this);
      if (arguments.length < 2) throw missing('name', 'value');
      const wanted = wellFormed(name);
      const text = wellFormed(value);
      const kept = [];
      let found = false;
      for (let i = 0; i < self.#list.length; i += 2) {
        if (self.#list[i] !== wanted) kept.push(self.#list[i], self.#list[i + 1]);
        else if (!found) { found = true; kept.push(wanted, text); }
      }
      if (!found) kept.push(wanted, text);
      self.#list = kept;
      self.#changed();
    }
    sort() {
      const self = URLSearchParams.#of(this);
      const pairs = [];
      for (let i = 0; i < self.#list.length; i += 2) pairs.push([self.#list[i], self.#list[i + 1]]);
      // By code units, which is how strings compare; the sort is stable.
      pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      self.#list = pairs.flat();
      self.#changed();
    }
    forEach(callback, thisArg = undefined) {
      const self = URLSearchParams.#of(this);
      if (typeof callback !== 'function') throw captured.invalidType('The "callback" argument must be of type function.');
      for (let i = 0; i < self.#list.length; i += 2) {
        captured.apply(callback, thisArg, [self.#list[i + 1], self.#list[i], this]);
      }
    }
    entries() { return new ParamsIterator(URLSearchParams.#of(this), 'entries'); }
    keys() { return new ParamsIterator(URLSearchParams.#of(this), 'keys'); }
    values() { return new ParamsIterator(URLSearchParams.#of(this), 'values'); }
    toString() { return URLSearchParams.#of(this).#text(); }
    static {
      listOf = (params) => (#list in params ? params.#list : undefined);
      replaceList = (params, query) => { params.#list = native.readForm(query); };
      bindParams = { make(url, query) { const params = new URLSearchParams(query); params.#url = url; return params; } };
    }
  }
  const { entries } = URLSearchParams.prototype;
  const names = ['append', 'delete', 'get', 'getAll', 'has', 'set', 'sort', 'forEach', 'entries', 'keys', 'values', 'toString',
    'size'];
  enumerable(URLSearchParams.prototype, names);
  defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: entries, writable: true, configurable: true });
  tag(URLSearchParams.prototype, 'URLSearchParams');

  class ParamsIterator {
    #params; #kind; #at = 0;
    constructor(params, kind) { this.#params = params; this.#kind = kind; }
    next() {
      if (typeof this !== 'object' || this === null || !(#at in this)) throw invalidThis('URLSearchParamsIterator');
      const list = listOf(this.#params);
      if (this.#at >= list.length) return { value: undefined, done: true };
      const name = list[this.#at];
      const value = list[this.#at + 1];
      this.#at += 2;
      return { value: this.#kind === 'keys' ? name : this.#kind === 'values' ? value : [name, value], done: false };
    }
  }
  Object.setPrototypeOf(ParamsIterator.prototype, getPrototypeOf(getPrototypeOf([][Symbol.iterator]())));
  enumerable(ParamsIterator.prototype, ['next']);
  tag(ParamsIterator.prototype, 'URLSearchParams Iterator');
  delete ParamsIterator.prototype.constructor;

  // The first argument of a URL whose parts are known.
  const made = {};
  class URL {
    // The serialized URL, then the positions of its parts.
    #parts;
    #params;
    constructor(input, base = undefined) {
      if (arguments.length === 0) throw missing('url');
      if (input === made) {
        this.#parts = base;
        return;
      }
      const text = wellFormed(input);
      const against = base === undefined ? undefined : wellFormed(base);
      this.#parts = native.parse(text, against);
      if (this.#parts === undefined) throw invalidUrl(text, against);
    }
    static canParse(url, base = undefined) {
      if (arguments.length === 0) throw missing('url');
      return native.parse(wellFormed(url), base === undefined ? undefined : wellFormed(base)) !== undefined;
    }
    static parse(url, base = undefined) {
      if (arguments.length === 0) throw missing('url');
      return URL.#parse(wellFormed(url), base === undefined ? undefined : wellFormed(base));
    }
    static #parse(text, against) {
      const parts = native.parse(text, against);
      return parts === undefined ? null : new URL(made, parts);
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#parts in value)) throw invalidThis('URL');
      return value;
    }
    #slice(from, to) { return this.#parts[0].slice(from === 0 ? 0 : this.#parts[from], to === 0 ? undefined : this.#parts[to]); }
    #set(part, value) {
      this.#parts = native.set(this.#parts[0], part, wellFormed(value));
    }
    #search() {
      const text = this.#slice(PATH_END, QUERY_END);
      return text === '?' ? '' : text;
    }
    #hash() {
      const text = this.#slice(QUERY_END, 0);
      return text === '#' ? '' : text;
    }
    #searchParams() { return (this.#params ??= bindParams.make(this, this.#search().slice(1))); }
    #origin() {
      const protocol = this.#slice(0, SCHEME);
      switch (protocol) {
        case 'http:': case 'https:': case 'ws:': case 'wss:': case 'ftp:': return `${protocol}//${this.#slice(HOST, PORT_END)}`;
        case 'blob:': {
          const inner = URL.#parse(this.#slice(PATH, PATH_END), undefined);
          const scheme = inner?.#slice(0, SCHEME);
          return scheme === 'http:' || scheme === 'https:' ? inner.#origin() : 'null';
        }
        default: return 'null';
      }
    }
    #readParams() { if (this.#params !== undefined) replaceList(this.#params, this.#search().slice(1)); }
    get href() { return URL.#of(this).#parts[0]; }
    set href(value) {
      const self = URL.#of(this);
      const text = wellFormed(value);
      const parts = native.parse(text, undefined);
      if (parts === undefined) throw invalidUrl(text);
      self.#parts = parts;
      self.#readParams();
    }
    get origin() { return URL.#of(this).#origin(); }
    get protocol() { return URL.#of(this).#slice(0, SCHEME); }
    set protocol(value) { URL.#of(this).#set('protocol', value); }
    get username() { return URL.#of(this).#slice(USER, USER_END); }
    set username(value) { URL.#of(this).#set('username', value); }
    get password() { return URL.#of(this).#slice(PASSWORD, PASSWORD_END); }
    set password(value) { URL.#of(this).#set('password', value); }
    get host() { return URL.#of(this).#slice(HOST, PORT_END); }
    set host(value) { URL.#of(this).#set('host', value); }
    get hostname() { return URL.#of(this).#slice(HOST, HOST_END); }
    set hostname(value) { URL.#of(this).#set('hostname', value); }
    get port() { return URL.#of(this).#slice(PORT, PORT_END); }
    set port(value) { URL.#of(this).#set('port', value); }
    get pathname() { return URL.#of(this).#slice(PATH, PATH_END); }
    set pathname(value) { URL.#of(this).#set('pathname', value); }
    get search() { return URL.#of(this).#search(); }
    set search(value) {
      const self = URL.#of(this);
      self.#set('search', value);
      self.#readParams();
    }
    get searchParams() { return URL.#of(this).#searchParams(); }
    get hash() { return URL.#of(this).#hash(); }
    set hash(value) { URL.#of(this).#set('hash', value); }
    toString() { return URL.#of(this).#parts[0]; }
    toJSON() { return URL.#of(this).#parts[0]; }
    static {
      bindParams.changed = (url, text) => { url.#set('search', text); };
      captured.showAs((object) => (#parts in object ? {
        href: object.#parts[0], origin: object.#origin(), protocol: object.#slice(0, SCHEME),
        username: object.#slice(USER, USER_END), password: object.#slice(PASSWORD, PASSWORD_END),
        host: object.#slice(HOST, PORT_END), hostname: object.#slice(HOST, HOST_END), port: object.#slice(PORT, PORT_END),
        pathname: object.#slice(PATH, PATH_END), search: object.#search(), searchParams: object.#searchParams(),
        hash: object.#hash(),
      } : undefined));
    }
  }
  enumerable(URL.prototype, ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search',
    'searchParams', 'hash', 'toString', 'toJSON']);
  enumerable(URL, ['canParse', 'parse']);
  tag(URL.prototype, 'URL');
  captured.showAs((object) => listOf(object));
  return { URL, URLSearchParams, isParams: (value) => typeof value === 'object' && value !== null && listOf(value) !== undefined };
}
