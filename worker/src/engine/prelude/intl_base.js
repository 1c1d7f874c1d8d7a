// What the constructors of `Intl` share: lists of locales, options, and how a constructor keeps its state.
0,function (own, _native, captured) {
  'use strict';
  const { TypeError, RangeError, Symbol, Object, Map, WeakMap, Number } = captured.globals;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
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
  const isSupported = (tag) => own.supported(tag);
  // A keyword of a tag, with the value that an option gives it.
  const keyword = (name, option) => (option === undefined ? name : `${name}=${option}`);
  // The first locale of the list that has data. `keywords`: those that matter.
  const resolve = (locales, ...keywords) => own.resolve(canonicalList(locales), keywords);

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
  const systems = own.values('numberingSystem');
  const numberingSystem = (options) => {
    const value = options.numberingSystem;
    if (value === undefined) return undefined;
    const text = `${value}`.toLowerCase();
    if (!/^[a-z0-9]{3,8}(-[a-z0-9]{3,8})*$/.test(text)) throw new RangeError(`Invalid numberingSystem : ${value}`);
    return systems.includes(text) ? text : undefined;
  };

  // A constructor whose instances have slots that nothing else reaches. `setup(locales, options)` returns them.
  const slots = new WeakMap();
  captured.neverClones((object) => slots.has(object));
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

  return { own, split, canonical, canonicalList, resolve, keyword, optionsOf, word, flag, whole, numberingSystem, systems, define, toParts, cached,
    slotsOf: (value) => slots.get(value), DEFAULT };
}
