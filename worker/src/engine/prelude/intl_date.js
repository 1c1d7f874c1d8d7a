// Intl.DateTimeFormat, with the Gregorian calendar.
0,function (_own, _native, captured) {
  'use strict';
  const { RangeError, TypeError, Object, Date, Math } = captured.globals;
  const { own, resolve, keyword, optionsOf, word, flag, whole, numberingSystem, define, toParts, cached } = captured.part('intl_base');

  const NUMERIC = ['2-digit', 'numeric'];
  const NAME = ['narrow', 'short', 'long'];
  const FIELDS = { __proto__: null, weekday: NAME, era: NAME, year: NUMERIC, month: [...NUMERIC, ...NAME], day: NUMERIC, hour: NUMERIC,
    minute: NUMERIC, second: NUMERIC };
  const CYCLES = ['h11', 'h12', 'h23', 'h24'];
  const STYLES = ['full', 'long', 'medium', 'short'];

  // `required` and `defaults`: 'date', 'time', 'any', 'all', by ECMA-402.
  const make = (locales, given, required, defaults) => {
    const options = optionsOf(given);
    word(options, 'localeMatcher', ['lookup', 'best fit'], 'best fit');
    const { calendar } = options;
    const system = numberingSystem(options);
    const hour12 = flag(options, 'hour12');
    let hourCycle = word(options, 'hourCycle', CYCLES, undefined);
    if (hour12 !== undefined) hourCycle = undefined;
    const { locale, tag, values } = resolve(locales, keyword('nu', system), hour12 === undefined ? keyword('hc', hourCycle) : 'hc!',
      keyword('ca', calendar === undefined ? undefined : `${calendar}`.toLowerCase()));
    if (values.ca !== undefined && !['gregory', 'gregorian', 'iso8601'].includes(values.ca)) {
      throw new RangeError(`Intl.DateTimeFormat: the calendar "${values.ca}" is not available`);
    }
    let timeZone = options.timeZone === undefined ? undefined : `${options.timeZone}`;
    if (timeZone !== undefined && own.timeZone(timeZone) === undefined) throw new RangeError(`Invalid time zone specified: ${timeZone}`);
    const spec = { __proto__: null, timeZone };
    let fields = 0;
    const asked = { __proto__: null };
    for (const name of Object.keys(FIELDS)) {
      const value = word(options, name, FIELDS[name], undefined);
      if (value !== undefined) { spec[name] = value; asked[name] = value; fields += 1; }
    }
    if (options.dayPeriod !== undefined) {
      word(options, 'dayPeriod', NAME, undefined);
      throw new RangeError('Intl.DateTimeFormat: dayPeriod is not available');
    }
    const fraction = whole(options, 'fractionalSecondDigits', 1, 3, undefined);
    const zoneName = word(options, 'timeZoneName',
      ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'], undefined);
    if (fraction !== undefined && spec.second === undefined && options.second === undefined) {
      throw new RangeError('Intl.DateTimeFormat: fractionalSecondDigits without second is not available');
    }
    if (fraction !== undefined) { spec.fractionalSecondDigits = fraction; fields += 1; }
    if (zoneName !== undefined) { spec.timeZoneName = zoneName; fields += 1; }
    word(options, 'formatMatcher', ['basic', 'best fit'], 'best fit');
    const dateStyle = word(options, 'dateStyle', STYLES, undefined);
    const timeStyle = word(options, 'timeStyle', STYLES, undefined);
    if (dateStyle !== undefined || timeStyle !== undefined) {
      if (fields > 0) throw new TypeError(`Can't set option ${Object.keys(asked)[0] ?? 'timeZoneName'} when ${dateStyle === undefined ? 'timeStyle' : 'dateStyle'} is used`);
      if (required === 'date' && timeStyle !== undefined) throw new TypeError('Invalid option : timeStyle');
      if (required === 'time' && dateStyle !== undefined) throw new TypeError('Invalid option : dateStyle');
      spec.dateStyle = dateStyle;
      spec.timeStyle = timeStyle;
    } else {
      const hasDate = spec.weekday !== undefined || spec.year !== undefined || spec.month !== undefined || spec.day !== undefined;
      const hasTime = spec.hour !== undefined || spec.minute !== undefined || spec.second !== undefined || fraction !== undefined;
      const missing = !(((required === 'date' || required === 'any') && hasDate) || ((required === 'time' || required === 'any') && hasTime));
      if (missing && (defaults === 'date' || defaults === 'all')) spec.year = spec.month = spec.day = 'numeric';
      if (missing && (defaults === 'time' || defaults === 'all')) spec.hour = spec.minute = spec.second = 'numeric';
      // A script that requests an era only has the fields of a date too.
      if (spec.era !== undefined && spec.year === undefined) spec.year = spec.month = spec.day = 'numeric';
    }
    spec.hourCycle = hour12 === true ? '12' : hour12 === false ? '24' : values.hc;
    const [format, zone, cycle, pattern] = own.date(tag, spec);
    const resolved = { locale, calendar: values.ca === 'iso8601' ? 'iso8601' : 'gregory', numberingSystem: values.nu ?? 'latn', timeZone: zone };
    if (cycle !== undefined && cycle !== null) { resolved.hourCycle = cycle; resolved.hour12 = cycle === 'h11' || cycle === 'h12'; }
    if (dateStyle === undefined && timeStyle === undefined) {
      for (const name of Object.keys(FIELDS)) {
        if (spec[name] === undefined) continue;
        // Minutes and seconds have two digits beside an hour.
        const two = { __proto__: null, month: ['MM', 'LL'], day: ['dd'], hour: ['HH', 'hh'], minute: ['mm'], second: ['ss'] }[name];
        resolved[name] = spec[name] === 'numeric' && two?.some((letters) => ` ${pattern} `.includes(letters)) ? '2-digit' : spec[name];
      }
      if (fraction !== undefined) resolved.fractionalSecondDigits = fraction;
      if (zoneName !== undefined) resolved.timeZoneName = zoneName;
    } else {
      if (dateStyle !== undefined) resolved.dateStyle = dateStyle;
      if (timeStyle !== undefined) resolved.timeStyle = timeStyle;
    }
    return { format, resolved, bound: undefined };
  };
  const now = Date.now;
  const timeOf = (value) => {
    const time = value === undefined ? now() : +value;
    if (!(Math.abs(time) <= 8.64e15)) throw new RangeError('Invalid time value');
    return Math.trunc(time);
  };
  const refuse = (name) => { throw new RangeError(`Intl: ${name}() is not available`); };
  const DateTimeFormat = define('DateTimeFormat', false, (locales, options) => make(locales, options, 'any', 'date'), {
    formatToParts: (slots, date = undefined) => toParts(slots.format(timeOf(date), true)),
    formatRange: () => refuse('formatRange'),
    formatRangeToParts: () => refuse('formatRangeToParts'),
    resolvedOptions: (slots) => ({ ...slots.resolved }),
  }, {
    format: (slots) => (slots.bound ??= (date) => slots.format(timeOf(date), false)),
  });
  const formats = { __proto__: null, all: cached((locales, options) => make(locales, options, 'any', 'all')),
    date: cached((locales, options) => make(locales, options, 'date', 'date')),
    time: cached((locales, options) => make(locales, options, 'time', 'time')) };
  // The English name of the local zone at a time.
  const zoneNames = () => {
    const { format } = make('en-US', { timeZoneName: 'long' }, 'any', 'date');
    return (time) => {
      for (const { type, value } of toParts(format(time, true))) if (type === 'timeZoneName') return value;
      return '';
    };
  };
  return { DateTimeFormat, zoneNames,
    dateText: (time, locales, options, fields) =>
      (time !== time ? 'Invalid Date' : formats[fields](locales, options).format(timeOf(time), false)) };
}
