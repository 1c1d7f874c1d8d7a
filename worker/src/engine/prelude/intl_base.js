// What the constructors of `Intl` share: lists of locales, options, and how a constructor keeps its state.
(function (own, _native, captured) {
  'use strict';
  const { TypeError, RangeError, Symbol, Object, Map, WeakMap, Number } = captured.globals;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  // Languages whose data are complete and whose usual calendar is the Gregorian one.
  const LANGUAGES = ` af am ar as az be bg bn bs ca cs cy da de el en es et eu fi fil fr ga gl gu he hi hr hu hy id is it ja ka kk km
    kn ko ky lo lt lv mk ml mn mr ms my nb ne nl nn no or pa pl pt ro ru si sk sl so sq sr sv sw ta te tk tr uk ur uz vi yue zh zu `
    .replace(/\s+/g, ' ');
  const DEFAULT = 'en-US';

  // A canonical tag in its parts: the name, and the keywords of its `u` extension.
  const split = (tag) => {
    const at = tag.indexOf('-u-');
    const keywords = { __proto__: null };
    const name = (at === -1 ? tag : tag.slice(0, at)).replace(/-[a-wy-z0-9]-.*$/, '').replace(/-x-.*$/, '');
    if (at !== -1) {
      let key;
      for (const part of tag.slice(at + 3).split('-')) {
        if (part.length === 1) break;
        if (part.length === 2) { key = part; keywords[key] = ''; } else if (key !== undefined) keywords[key] += (keywords[key] ? '-' : '') + part;
      }
    }
    return { name, keywords };
  };
  const canonical = (tag) => {
    if (typeof tag !== 'string' && (typeof tag !== 'object' || tag === null)) {
      throw new TypeError('Incorrect locale information provided');
    }
    const found = own.canonical(`${tag}`);
    if (found === undefined) throw new RangeError(`Incorrect locale information provided`);
    return found;
  };
  const canonicalList = (locales) => {
    if (locales === undefined) return [];
    if (locales === null) throw new TypeError('Cannot convert undefined or null to object');
    const list = [];
    if (typeof locales === 'string' || (typeof locales === 'object' && Symbol.toStringTag in locales && locales[Symbol.toStringTag] === 'Intl.Locale')) {
      return [canonical(locales)];
    }
    const object = Object(locales);
    const length = Number(object.length) || 0;
    for (let i = 0; i < length; i++) {
      if (!(i in object)) continue;
      const tag = canonical(object[i]);
      if (!list.includes(tag)) list.push(tag);
    }
    return list;
  };
  const isSupported = (tag) => LANGUAGES.includes(` ${split(tag).name.split('-')[0]} `);
  // The first locale of the list that has data. `keys`: the keywords that matter, with the values that options give them.
  const resolve = (locales, keys = {}) => {
    let chosen = DEFAULT;
    for (const tag of canonicalList(locales)) if (isSupported(tag)) { chosen = tag; break; }
    const { name, keywords } = split(chosen);
    let shown = '';
    let used = '';
    const values = { __proto__: null };
    for (const key of Object.keys(keys).sort()) {
      const { option, allowed } = keys[key];
      const given = keywords[key];
      const fromTag = given !== undefined && allowed(given) ? given : undefined;
      const value = option ?? fromTag;
      if (value === undefined) continue;
      values[key] = value;
      used += value === '' || value === 'true' ? `-${key}` : `-${key}-${value}`;
      if (fromTag !== undefined && (option === undefined || option === fromTag)) shown += given === '' ? `-${key}` : `-${key}-${given}`;
    }
    return { locale: shown === '' ? name : `${name}-u${shown}`, tag: used === '' ? name : `${name}-u${used}`, values };
  };

  const optionsOf = (options) => {
    if (options === undefined) return { __proto__: null };
    if (options === null) throw new TypeError('Cannot convert undefined or null to object');
    return Object(options);
  };
  // An option that is one of some words.
  const word = (options, name, allowed, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    const text = `${value}`;
    if (allowed !== undefined && !allowed.includes(text)) {
      throw new RangeError(`Value ${text} out of range for Intl options property ${name}`);
    }
    return text;
  };
  const flag = (options, name) => (options[name] === undefined ? undefined : !!options[name]);
  const whole = (options, name, least, most, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    const number = Number(value);
    if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(number);
  };
  const { Math } = captured.globals;
  const systems = ['arab', 'arabext', 'beng', 'deva', 'fullwide', 'gujr', 'guru', 'khmr', 'knda', 'laoo', 'latn', 'mlym', 'mymr',
    'orya', 'tamldec', 'telu', 'thai', 'tibt'];
  const numberingSystem = (options) => {
    const value = options.numberingSystem;
    if (value === undefined) return undefined;
    const text = `${value}`.toLowerCase();
    if (!/^[a-z0-9]{3,8}(-[a-z0-9]{3,8})*$/.test(text)) throw new RangeError(`Invalid numberingSystem : ${value}`);
    return systems.includes(text) ? text : undefined;
  };

  // A constructor whose instances have slots that nothing else reaches. `setup(locales, options)` returns them.
  const slots = new WeakMap();
  const slotsOf = (value, name, method) => {
    const found = typeof value === 'object' && value !== null ? slots.get(value) : undefined;
    if (found === undefined || found.kind !== name) {
      throw new TypeError(`Method Intl.${name}.prototype.${method} called on incompatible receiver ${typeof value}`);
    }
    return found;
  };
  const define = (name, mustNew, setup, methods, getters = {}) => {
    const constructor = {
      [name]: function (locales = undefined, options = undefined) {
        if (new.target === undefined && mustNew) throw new TypeError(`Constructor Intl.${name} requires 'new'`);
        const target = new.target ?? constructor;
        const instance = target === constructor ? { __proto__: constructor.prototype } : captured.globals.Reflect.construct(Object, [], target);
        slots.set(instance, { kind: name, ...setup(locales, options) });
        return instance;
      },
    }[name];
    defineProperty(constructor, 'length', { value: 0, configurable: true });
    defineProperty(constructor, 'prototype', { writable: false, enumerable: false });
    const { prototype } = constructor;
    defineProperty(prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
    for (const key of Object.keys(methods)) {
      const run = methods[key];
      const method = { [key](...args) { return run(slotsOf(this, name, key), ...args); } }[key];
      defineProperty(method, 'length', { value: Math.max(run.length - 1, 0), configurable: true });
      defineProperty(prototype, key, { value: method, writable: true, configurable: true });
    }
    for (const key of Object.keys(getters)) {
      const { get } = getOwnPropertyDescriptor({ get [key]() { return getters[key](slotsOf(this, name, key)); } }, key);
      defineProperty(prototype, key, { get, configurable: true });
    }
    defineProperty(constructor, 'supportedLocalesOf', {
      value: { supportedLocalesOf(locales, options = undefined) {
        word(optionsOf(options), 'localeMatcher', ['lookup', 'best fit'], 'best fit');
        return canonicalList(locales).filter(isSupported);
      } }.supportedLocalesOf,
      writable: true,
      configurable: true,
    });
    return constructor;
  };
  // Formatters of the calls without options, by locale: scripts make the same call for each element of a list.
  const MOST = 32;
  const cached = (create) => {
    const known = new Map();
    return (locales, options) => {
      if (options !== undefined || (locales !== undefined && typeof locales !== 'string')) return create(locales, options);
      let found = known.get(locales);
      if (found === undefined) {
        if (known.size >= MOST) known.clear();
        known.set(locales, (found = create(locales, options)));
      }
      return found;
    };
  };
  // Types and values in turn as objects.
  const toParts = (list) => {
    const parts = [];
    for (let i = 0; i < list.length; i += 2) parts.push({ type: list[i], value: list[i + 1] });
    return parts;
  };

  return { own, split, canonical, canonicalList, resolve, optionsOf, word, flag, whole, numberingSystem, systems, define, toParts, cached,
    slotsOf: (value) => slots.get(value), DEFAULT };
})
