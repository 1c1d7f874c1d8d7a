// Intl.NumberFormat and Intl.PluralRules.
0,function (_own, _native, captured) {
  'use strict';
  const { RangeError, TypeError, Object, Number } = captured.globals;
  const { own, resolve, keyword, optionsOf, word, whole, numberingSystem, define, toParts, cached } = captured.part('intl_base');

  // The digits of a number, by the rules of ECMA-402 as far as the formatter has them.
  const digitsOf = (options, least, most, compact) => {
    const digits = { minimumIntegerDigits: whole(options, 'minimumIntegerDigits', 1, 21, 1) };
    const given = (name) => options[name] !== undefined;
    const roundingIncrement = whole(options, 'roundingIncrement', 1, 5000, 1);
    if (roundingIncrement !== 1) throw new RangeError('Intl: roundingIncrement is not available');
    const roundingPriority = word(options, 'roundingPriority', ['auto', 'morePrecision', 'lessPrecision'], 'auto');
    if (roundingPriority !== 'auto') throw new RangeError('Intl: roundingPriority is not available');
    digits.roundingMode = word(options, 'roundingMode',
      ['ceil', 'floor', 'expand', 'trunc', 'halfCeil', 'halfFloor', 'halfExpand', 'halfTrunc', 'halfEven'], 'halfExpand');
    digits.trailingZeroDisplay = word(options, 'trailingZeroDisplay', ['auto', 'stripIfInteger'], 'auto');
    if (given('minimumSignificantDigits') || given('maximumSignificantDigits')) {
      digits.minimumSignificantDigits = whole(options, 'minimumSignificantDigits', 1, 21, 1);
      digits.maximumSignificantDigits = whole(options, 'maximumSignificantDigits', digits.minimumSignificantDigits, 21, 21);
      return digits;
    }
    if (!given('minimumFractionDigits') && !given('maximumFractionDigits')) {
      digits.minimumFractionDigits = compact ? 0 : least;
      digits.maximumFractionDigits = compact ? 0 : most;
      digits.usualDigits = compact;
      return digits;
    }
    let first = whole(options, 'minimumFractionDigits', 0, 100, undefined);
    let last = whole(options, 'maximumFractionDigits', 0, 100, undefined);
    if (first === undefined) first = Math.min(least, last);
    else if (last === undefined) last = Math.max(most, first);
    else if (first > last) throw new RangeError('maximumFractionDigits value is out of range.');
    digits.minimumFractionDigits = first;
    digits.maximumFractionDigits = last;
    return digits;
  };
  const { Math } = captured.globals;
  const setup = (locales, given) => {
    const options = optionsOf(given);
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const system = numberingSystem(options);
    const { locale, tag, values } = resolve(locales, keyword('nu', system));
    const style = word(options, 'style', ['decimal', 'percent', 'currency', 'unit'], 'decimal');
    let currency = options.currency;
    if (currency === undefined) {
      if (style === 'currency') throw new TypeError('Currency code is required with currency style.');
    } else {
      currency = `${currency}`;
      if (!/^[A-Za-z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${currency}`);
      currency = currency.toUpperCase();
    }
    const currencyDisplay = word(options, 'currencyDisplay', ['code', 'symbol', 'narrowSymbol', 'name'], 'symbol');
    const currencySign = word(options, 'currencySign', ['standard', 'accounting'], 'standard');
    let { unit } = options;
    if (unit === undefined) {
      if (style === 'unit') throw new TypeError('Required option "unit" must not be undefined');
    } else {
      unit = `${unit}`;
      if (!own.isUnit(unit)) {
        throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
      }
    }
    const unitDisplay = word(options, 'unitDisplay', ['short', 'narrow', 'long'], 'short');
    const notation = word(options, 'notation', ['standard', 'scientific', 'engineering', 'compact'], 'standard');
    if (currencySign === 'accounting' && style === 'currency') throw new RangeError('Intl.NumberFormat: currencySign "accounting" is not available');
    if (notation !== 'standard' && style !== 'decimal') {
      throw new RangeError(`Intl.NumberFormat: notation "${notation}" with style "${style}" is not available`);
    }
    const minor = style === 'currency' ? own.currencyDigits(currency) : 0;
    const digits = digitsOf(options, style === 'currency' ? minor : 0,
      style === 'currency' ? minor : style === 'percent' ? 0 : 3, notation === 'compact');
    const compactDisplay = word(options, 'compactDisplay', ['short', 'long'], 'short');
    let { useGrouping } = options;
    if (useGrouping === undefined || useGrouping === 'true' || useGrouping === 'false') useGrouping = notation === 'compact' ? 'min2' : 'auto';
    else if (useGrouping === true) useGrouping = 'always';
    else if (useGrouping === false || useGrouping === null || useGrouping === 0 || useGrouping === '') useGrouping = false;
    else useGrouping = word(options, 'useGrouping', ['min2', 'auto', 'always'], 'auto');
    const signDisplay = word(options, 'signDisplay', ['auto', 'never', 'always', 'exceptZero', 'negative'], 'auto');
    const spec = { __proto__: null, ...digits, style, currency, currencyDisplay, unit, unitDisplay, notation, compactDisplay,
      useGrouping: `${useGrouping}`, signDisplay };
    const { usualDigits, roundingMode, trailingZeroDisplay, ...shown } = digits;
    const resolved = { locale, numberingSystem: values.nu ?? 'latn', style };
    if (style === 'currency') Object.assign(resolved, { currency, currencyDisplay, currencySign });
    if (style === 'unit') Object.assign(resolved, { unit, unitDisplay });
    Object.assign(resolved, shown, { useGrouping, notation });
    if (notation === 'compact') resolved.compactDisplay = compactDisplay;
    Object.assign(resolved, { signDisplay, roundingIncrement: 1, roundingMode, roundingPriority: 'auto', trailingZeroDisplay });
    return { format: own.number(tag, spec), resolved, bound: undefined };
  };
  // A number's text without an exponent.
  const plain = (text) => {
    const at = text.indexOf('e');
    if (at === -1) return text;
    const sign = text[0] === '-' ? '-' : '';
    const exponent = +text.slice(at + 1);
    const [whole, fraction = ''] = text.slice(sign.length, at).split('.');
    if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${whole}${fraction}`;
    return `${sign}${whole}${fraction}${'0'.repeat(exponent - fraction.length)}`;
  };
  // A number's text without loss.
  const textOf = (value) => {
    if (typeof value === 'bigint') return `${value}`;
    if (typeof value === 'string') {
      const text = value.trim();
      if (/^[+-]?\d+(\.\d+)?$/.test(text)) return text[0] === '+' ? text.slice(1) : text;
    }
    const primitive = typeof value === 'object' && value !== null ? Object(value)[captured.globals.Symbol.toPrimitive]?.('number') ?? value.valueOf() : value;
    if (typeof primitive === 'bigint') return `${primitive}`;
    const number = +primitive;
    return number === 0 && 1 / number < 0 ? '-0' : plain(`${number}`);
  };
  const refuse = (name) => { throw new RangeError(`Intl: ${name}() is not available`); };
  const NumberFormat = define('NumberFormat', false, setup, {
    formatToParts: (slots, value = undefined) => toParts(slots.format(textOf(value), true)),
    formatRange: () => refuse('formatRange'),
    formatRangeToParts: () => refuse('formatRangeToParts'),
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  }, {
    format: (slots) => (slots.bound ??= (value) => slots.format(textOf(value), false)),
  });

  const PluralRules = define('PluralRules', true, (locales, given) => {
    const options = optionsOf(given);
    const { locale, tag } = resolve(locales);
    const type = word(options, 'type', ['cardinal', 'ordinal'], 'cardinal');
    const digits = digitsOf(options, 0, 3, false);
    const select = own.plural(tag, type === 'ordinal', { __proto__: null, ...digits });
    const { roundingMode, trailingZeroDisplay, usualDigits, ...shown } = digits;
    const order = ['few', 'many', 'one', 'two', 'zero', 'other'];
    const categories = select(undefined).split(' ');
    const resolved = { locale, type, ...shown, pluralCategories: order.filter((name) => categories.includes(name)), roundingIncrement: 1,
      roundingMode, roundingPriority: 'auto', trailingZeroDisplay };
    return { select, resolved };
  }, {
    select: (slots, value) => { const number = Number(value); return slots.select(number === 0 ? '0' : plain(`${number}`)); },
    selectRange: () => refuse('selectRange'),
    resolvedOptions: (slots) => ({ ...slots.resolved, pluralCategories: [...slots.resolved.pluralCategories] }),
  });
  const number = cached(setup);
  return { NumberFormat, PluralRules, textOf,
    numberText: (value, locales, options) => number(locales, options).format(textOf(value), false) };
}
