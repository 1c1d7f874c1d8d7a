// The rest of Intl: Collator, ListFormat, RelativeTimeFormat, Segmenter, DisplayNames, Locale.
0,function (_own, _native, captured) {
  'use strict';
  const { RangeError, TypeError, Object, Symbol, Number } = captured.globals;
  const { own, split, canonical, resolve, keyword, optionsOf, word, flag, define, slotsOf, canonicalList, cached, DEFAULT } = captured.part('intl_base');

  const collation = (locales, given) => {
    const options = optionsOf(given);
    const usage = word(options, 'usage', ['sort', 'search'], 'sort');
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const numeric = flag(options, 'numeric');
    const caseFirst = word(options, 'caseFirst', ['upper', 'lower', 'false'], undefined);
    const { locale, tag, values } = resolve(locales, 'co', keyword('kf', caseFirst), keyword('kn', numeric));
    const sensitivity = word(options, 'sensitivity', ['base', 'accent', 'case', 'variant'], 'variant');
    const ignorePunctuation = flag(options, 'ignorePunctuation') ?? false;
    return {
      compare: own.compare(tag, sensitivity, ignorePunctuation),
      resolved: { locale, usage, sensitivity, ignorePunctuation, collation: values.co || 'default',
        numeric: values.kn !== undefined && values.kn !== 'false', caseFirst: values.kf ?? 'false' },
      bound: undefined,
    };
  };
  const Collator = define('Collator', false, collation, {
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  }, {
    compare: (slots) => (slots.bound ??= (x, y) => slots.compare(`${x}`, `${y}`)),
  });

  const stringList = (list) => {
    if (list === undefined) return [];
    const items = [];
    for (const item of list) {
      if (typeof item !== 'string') throw new TypeError('Iterable yielded a non-String value');
      items.push(item);
    }
    return items;
  };
  const listParts = (slots, items) => {
    // Marks that are in no text show where the elements are.
    const text = slots.format(items.map(() => '\ufdd0'));
    const parts = [];
    text.split('\ufdd0').forEach((value, index) => {
      if (index > 0) parts.push({ type: 'element', value: items[index - 1] });
      if (value !== '') parts.push({ type: 'literal', value });
    });
    return parts;
  };
  const ListFormat = define('ListFormat', true, (locales, given) => {
    if (given !== undefined && (typeof given !== 'object' || given === null)) throw new TypeError('Incorrect ListFormat information provided');
    const options = given ?? {};
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const { locale, tag } = resolve(locales);
    const type = word(options, 'type', ['conjunction', 'disjunction', 'unit'], 'conjunction');
    const style = word(options, 'style', ['long', 'short', 'narrow'], 'long');
    return { format: own.list(tag, type, style), resolved: { locale, type, style } };
  }, {
    format: (slots, list = undefined) => {
      const items = stringList(list);
      if (items.every((item) => item === captured.wellFormed(item))) return slots.format(items);
      return listParts(slots, items).map((part) => part.value).join('');
    },
    formatToParts: (slots, list = undefined) => listParts(slots, stringList(list)),
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  });

  const UNITS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'];
  const relativeText = (slots, value, unit) => {
    const number = Number(value);
    const given = `${unit}`;
    const name = given.endsWith('s') ? given.slice(0, -1) : given;
    if (!UNITS.includes(name)) throw new RangeError(`Invalid unit argument for format() '${given}'`);
    if (!(number - number === 0)) throw new RangeError('Invalid value for Intl.RelativeTimeFormat.prototype.format()');
    const format = (slots.units[name] ??= own.relative(slots.tag, slots.resolved.style, slots.resolved.numeric === 'auto', name));
    const rounded = slots.round.format(number === 0 && 1 / number < 0 ? -0 : number);
    return { text: format(`${slots.plain(number)}`), name, rounded };
  };
  const RelativeTimeFormat = define('RelativeTimeFormat', true, (locales, given) => {
    const options = optionsOf(given);
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const { locale, tag, values } = resolve(locales, 'nu');
    const style = word(options, 'style', ['long', 'short', 'narrow'], 'long');
    const numeric = word(options, 'numeric', ['always', 'auto'], 'always');
    const { NumberFormat } = captured.part('intl_number');
    return { tag, units: { __proto__: null }, resolved: { locale, style, numeric, numberingSystem: values.nu ?? 'latn' },
      round: new NumberFormat(locale),
      // Three digits of a fraction, as numbers have.
      plain: (number) => (number === 0 && 1 / number < 0 ? '-0' : captured.part('intl_number').textOf(+number.toFixed(3))) };
  }, {
    format: (slots, value, unit) => relativeText(slots, value, unit).text,
    formatToParts: (slots, value, unit) => {
      const { text, name } = relativeText(slots, value, unit);
      const { NumberFormat } = captured.part('intl_number');
      const number = new NumberFormat(slots.resolved.locale).formatToParts(Math.abs(+slots.plain(Number(value))));
      const shown = number.map((part) => part.value).join('');
      const at = text.indexOf(shown);
      if (at === -1) return [{ type: 'literal', value: text }];
      const parts = [];
      if (at > 0) parts.push({ type: 'literal', value: text.slice(0, at) });
      for (const part of number) parts.push({ ...part, unit: name });
      if (at + shown.length < text.length) parts.push({ type: 'literal', value: text.slice(at + shown.length) });
      return parts;
    },
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  });
  const { Math } = captured.globals;

  class Segments {
    #text; #ends; #words;
    constructor(text, granularity) {
      this.#text = text;
      this.#words = granularity === 'word';
      this.#ends = own.boundaries(granularity, text);
    }
    #segment(index) {
      const start = Math.abs(this.#ends[index]);
      const end = this.#ends[index + 1];
      const segment = { segment: this.#text.slice(start, Math.abs(end)), index: start, input: this.#text };
      if (this.#words) segment.isWordLike = end > 0;
      return segment;
    }
    containing(index = 0) {
      const at = Math.trunc(Number(index)) || 0;
      if (at < 0 || at >= this.#text.length) return undefined;
      let low = 0;
      let high = this.#ends.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (Math.abs(this.#ends[middle]) <= at) low = middle; else high = middle;
      }
      return this.#segment(low);
    }
    * [Symbol.iterator]() {
      for (let index = 0; index + 1 < this.#ends.length; index++) yield this.#segment(index);
    }
  }
  delete Segments.prototype.constructor;
  const Segmenter = define('Segmenter', true, (locales, given) => {
    if (given !== undefined && (typeof given !== 'object' || given === null)) throw new TypeError('Incorrect Segmenter information provided');
    const options = given ?? {};
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const { locale } = resolve(locales);
    return { resolved: { locale, granularity: word(options, 'granularity', ['grapheme', 'word', 'sentence'], 'grapheme') } };
  }, {
    segment: (slots, text) => new Segments(`${text}`, slots.resolved.granularity),
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  });

  const CODES = { __proto__: null, language: /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i, region: /^([a-z]{2}|\d{3})$/i, script: /^[a-z]{4}$/i };
  const DisplayNames = define('DisplayNames', true, (locales, given) => {
    if (given === undefined) throw new TypeError('Cannot convert undefined or null to object');
    if (typeof given !== 'object' || given === null) throw new TypeError('Incorrect DisplayNames information provided');
    const options = given;
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const { locale, tag } = resolve(locales);
    const style = word(options, 'style', ['narrow', 'short', 'long'], 'long');
    const type = word(options, 'type', ['language', 'region', 'script', 'currency', 'calendar', 'dateTimeField'], undefined);
    if (type === undefined) throw new TypeError('Required option "type" must not be undefined');
    if (type === 'currency' || type === 'calendar' || type === 'dateTimeField') throw new RangeError(`Intl.DisplayNames: the type "${type}" is not available`);
    const fallback = word(options, 'fallback', ['code', 'none'], 'code');
    const languageDisplay = word(options, 'languageDisplay', ['dialect', 'standard'], 'dialect');
    const resolved = { locale, style, type, fallback };
    if (type === 'language') resolved.languageDisplay = languageDisplay;
    const name = own.display(tag, type, style, languageDisplay === 'standard');
    return { name, resolved };
  }, {
    of: (slots, code) => {
      const { type, fallback } = slots.resolved;
      const text = `${code}`;
      if (!CODES[type].test(text)) throw new RangeError(`Invalid argument to Intl.DisplayNames.prototype.of`);
      const name = type === 'region' ? text.toUpperCase()
        : type === 'script' ? text[0].toUpperCase() + text.slice(1).toLowerCase() : canonical(text);
      return slots.name(name) ?? (fallback === 'code' ? name : undefined);
    },
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  });

  const KEYS = { __proto__: null, calendar: 'ca', collation: 'co', hourCycle: 'hc', caseFirst: 'kf', numeric: 'kn', numberingSystem: 'nu' };
  const parts = (tag) => {
    const { name, keywords } = split(tag);
    const [language, ...rest] = name.split('-');
    let script;
    let region;
    for (const part of rest) {
      if (part.length === 4 && /^[A-Za-z]/.test(part)) script ??= part;
      else if (/^([A-Za-z]{2}|\d{3})$/.test(part)) region ??= part;
    }
    return { name, language, script, region, keywords };
  };
  const Locale = define('Locale', true, (tag, given) => {
    if (typeof tag !== 'string' && (typeof tag !== 'object' || tag === null)) throw new TypeError('First argument to Intl.Locale constructor can\'t be empty or missing');
    const options = optionsOf(given);
    const first = canonical(`${slotsOf(tag)?.tag ?? tag}`);
    const text = (name) => {
      const value = options[name];
      return value === undefined ? undefined : `${value}`;
    };
    const subtags = [text('language'), text('script'), text('region')];
    const keywords = [];
    for (const name of Object.keys(KEYS)) {
      const value = name === 'numeric' ? flag(options, name)
        : name === 'hourCycle' ? word(options, name, ['h11', 'h12', 'h23', 'h24'], undefined)
        : name === 'caseFirst' ? word(options, name, ['upper', 'lower', 'false'], undefined)
        : text(name);
      if (value !== undefined) keywords.push(KEYS[name], `${value}`);
    }
    const made = own.localeWith(first, subtags, keywords);
    if (made === undefined) throw new RangeError('Incorrect locale information provided');
    return { tag: made };
  }, {
    toString: (slots) => slots.tag,
    maximize: (slots) => new Locale(own.likely(slots.tag, true)),
    minimize: (slots) => new Locale(own.likely(slots.tag, false)),
  }, {
    baseName: (slots) => parts(slots.tag).name,
    language: (slots) => parts(slots.tag).language,
    script: (slots) => parts(slots.tag).script,
    region: (slots) => parts(slots.tag).region,
    calendar: (slots) => parts(slots.tag).keywords.ca,
    collation: (slots) => parts(slots.tag).keywords.co,
    hourCycle: (slots) => parts(slots.tag).keywords.hc,
    caseFirst: (slots) => parts(slots.tag).keywords.kf,
    numeric: (slots) => { const { kn } = parts(slots.tag).keywords; return kn !== undefined && kn !== 'false'; },
    numberingSystem: (slots) => parts(slots.tag).keywords.nu,
  });
  delete Locale.supportedLocalesOf;

  const collator = cached(collation);
  const changeCase = (text, locales, upper) => {
    const [tag = DEFAULT] = canonicalList(locales);
    // The other languages have no rules of their own.
    if (!['az', 'el', 'hy', 'lt', 'tr', 'nl'].includes(tag.split('-')[0])) {
      return upper ? text.toUpperCase() : text.toLowerCase();
    }
    return own.changeCase(tag, upper, text);
  };
  return { Collator, ListFormat, RelativeTimeFormat, Segmenter, DisplayNames, Locale,
    compareText: (text, other, locales, options) => collator(locales, options).compare(text, other), changeCase };
}
