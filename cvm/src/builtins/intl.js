// `Intl`: locales, options, `NumberFormat`, `PluralRules`, `DateTimeFormat`. ECMA-402.
//
// An object is a record of the text from which natives make its formatter (the tag, then a line for each option), of its resolved
// options (an object that no program reaches), and of its bound function, if it has one. Tags: 930 Collator, 931 DateTimeFormat,
// 932 DisplayNames, 933 ListFormat, 934 Locale, 935 NumberFormat, 936 PluralRules, 937 RelativeTimeFormat, 938 Segmenter,
// 939 Segments, 940 segment iterator.

function NeedIntl(value, tag, name) {
  if ($recordTag(value) !== tag) $typeError("Method Intl." + name + " called on incompatible receiver " + $shown(value));
}

// `Intl.X(…)` without `new` makes an object, too.
function ProtoOrUsual(newTarget, fallback) { return newTarget === undefined ? fallback : ProtoFor(newTarget, fallback); }

function IntlCopy(record) { return CopyDataProperties($create($$OBJECT_PROTO), $recordGet(record, 1)); }

// Types and values in turn as objects.
function PartsOf(list) {
  const parts = [];
  for (let i = 0; i < list.length; i += 2) $push(parts, { type: list[i], value: list[i + 1] });
  return parts;
}

function NotInIntl(name) { $rangeError("Intl: " + name + "() is not available"); }

// --- Locales

function CanonicalTag(value) {
  if (typeof value !== "string" && !$isObject(value)) $typeError("Incorrect locale information provided");
  const text = $recordTag(value) === 934 ? $recordGet(value, 0) : $toString(value);
  const tag = $intlCanonical(text);
  if (tag === undefined) $rangeError("Incorrect locale information provided: " + $shown(text));
  return tag;
}

function IncludesText(list, text) {
  for (let i = 0; i < list.length; i++) if (list[i] === text) return true;
  return false;
}

function CanonicalLocales(locales) {
  const list = [];
  if (locales === undefined) return list;
  if (typeof locales === "string" || $recordTag(locales) === 934) {
    $push(list, CanonicalTag(locales));
    return list;
  }
  const o = $toObject(locales);
  const length = $toLength(o.length);
  for (let i = 0; i < length; i++) {
    if (!(i in o)) continue;
    const tag = CanonicalTag(o[i]);
    if (!IncludesText(list, tag)) $push(list, tag);
  }
  return list;
}

// --- Options

function IntlOptions(options) { return options === undefined ? $create(null) : $toObject(options); }

// `allowed`: words with `|` between them.
function WordOption(options, name, allowed, fallback) {
  const value = options[name];
  if (value === undefined) return fallback;
  const text = $toString(value);
  if (!$intlIsWord(text, allowed)) $rangeError("Value " + $shown(text) + " out of range for Intl options property " + name);
  return text;
}

function MatcherOption(options) { WordOption(options, "localeMatcher", "lookup|best fit", "best fit"); }

function FlagOption(options, name) {
  const value = options[name];
  return value === undefined ? undefined : value ? true : false;
}

function WholeOf(value, name, least, most, fallback) {
  if (value === undefined) return fallback;
  const number = $toNumber(value);
  if (!(number >= least && number <= most)) $rangeError(name + " value is out of range.");
  return number - number % 1;
}

function WholeOption(options, name, least, most, fallback) { return WholeOf(options[name], name, least, most, fallback); }

// A keyword's value as BCP 47 has it, in lower case.
function TypeOption(options, name) {
  const value = options[name];
  if (value === undefined) return undefined;
  const text = $toString(value);
  const type = $intlType(text);
  if (type === undefined) $rangeError("Invalid " + name + " : " + $shown(text));
  return type;
}

function NumberingOption(options) {
  const system = TypeOption(options, "numberingSystem");
  return system !== undefined && $intlHas("numberingSystem", system) ? system : undefined;
}

// A keyword for `$intlResolve`, with the value that an option gives it.
function Keyword(key, option) { return option === undefined ? key : key + "=" + option; }

function Line(name, value) { return value === undefined ? "" : name + "=" + $toString(value) + "\n"; }

// --- Digits: the lines of the formatter, and the resolved options.

function DigitsSetup(options, least, most, compact) {
  const integer = WholeOption(options, "minimumIntegerDigits", 1, 21, 1);
  const leastFraction = options.minimumFractionDigits;
  const mostFraction = options.maximumFractionDigits;
  const leastSignificant = options.minimumSignificantDigits;
  const mostSignificant = options.maximumSignificantDigits;
  if (WholeOption(options, "roundingIncrement", 1, 5000, 1) !== 1) $rangeError("Intl: roundingIncrement is not available");
  const mode = WordOption(options, "roundingMode", "ceil|floor|expand|trunc|halfCeil|halfFloor|halfExpand|halfTrunc|halfEven", "halfExpand");
  if (WordOption(options, "roundingPriority", "auto|morePrecision|lessPrecision", "auto") !== "auto") {
    $rangeError("Intl: roundingPriority is not available");
  }
  const zeros = WordOption(options, "trailingZeroDisplay", "auto|stripIfInteger", "auto");
  const shown = $create(null);
  shown.minimumIntegerDigits = integer;
  let lines = Line("minimumIntegerDigits", integer) + Line("roundingMode", mode) + Line("trailingZeroDisplay", zeros);
  if (leastSignificant !== undefined || mostSignificant !== undefined) {
    const first = WholeOf(leastSignificant, "minimumSignificantDigits", 1, 21, 1);
    const last = WholeOf(mostSignificant, "maximumSignificantDigits", first, 21, 21);
    shown.minimumSignificantDigits = first;
    shown.maximumSignificantDigits = last;
    lines += Line("minimumSignificantDigits", first) + Line("maximumSignificantDigits", last);
    return [lines, shown, mode, zeros];
  }
  let first = least;
  let last = most;
  if (leastFraction === undefined && mostFraction === undefined) {
    if (compact) {
      first = 0;
      last = 0;
      lines += "usualDigits=true\n";
    }
  } else {
    first = WholeOf(leastFraction, "minimumFractionDigits", 0, 100, undefined);
    last = WholeOf(mostFraction, "maximumFractionDigits", 0, 100, undefined);
    if (first === undefined) first = least < last ? least : last;
    else if (last === undefined) last = most > first ? most : first;
    else if (first > last) $rangeError("maximumFractionDigits value is out of range.");
  }
  shown.minimumFractionDigits = first;
  shown.maximumFractionDigits = last;
  return [lines + Line("minimumFractionDigits", first) + Line("maximumFractionDigits", last), shown, mode, zeros];
}

function RoundingOptions(resolved, digits) {
  resolved.roundingIncrement = 1;
  resolved.roundingMode = digits[2];
  resolved.roundingPriority = "auto";
  resolved.trailingZeroDisplay = digits[3];
}

// --- NumberFormat

function GroupingOption(options, compact) {
  const value = options.useGrouping;
  if (value === undefined || value === "true" || value === "false") return compact ? "min2" : "auto";
  if (value === true) return "always";
  if (!value) return false;
  const text = $toString(value);
  if (text === "true" || text === "false") return compact ? "min2" : "auto";
  if (!$intlIsWord(text, "min2|auto|always")) $rangeError("Value " + $shown(text) + " out of range for Intl options property useGrouping");
  return text;
}

// The formatter's text and the resolved options.
function NumberSetup(locales, given) {
  const list = CanonicalLocales(locales);
  const options = IntlOptions(given);
  MatcherOption(options);
  const found = $intlResolve(list, Keyword("nu", NumberingOption(options)));
  const style = WordOption(options, "style", "decimal|percent|currency|unit", "decimal");
  let currency = options.currency;
  if (currency === undefined) {
    if (style === "currency") $typeError("Currency code is required with currency style.");
  } else {
    const text = $toString(currency);
    currency = $intlCurrency(text);
    if (currency === undefined) $rangeError("Invalid currency code : " + $shown(text));
  }
  const currencyDisplay = WordOption(options, "currencyDisplay", "code|symbol|narrowSymbol|name", "symbol");
  const currencySign = WordOption(options, "currencySign", "standard|accounting", "standard");
  let unit = options.unit;
  if (unit === undefined) {
    if (style === "unit") $typeError("Required option \"unit\" must not be undefined");
  } else {
    unit = $toString(unit);
    if (!$intlHas("unit", unit)) $rangeError("Invalid unit argument for Intl.NumberFormat() '" + $shown(unit) + "'");
  }
  const unitDisplay = WordOption(options, "unitDisplay", "short|narrow|long", "short");
  const notation = WordOption(options, "notation", "standard|scientific|engineering|compact", "standard");
  if (currencySign === "accounting" && style === "currency") $rangeError("Intl.NumberFormat: currencySign \"accounting\" is not available");
  if (notation !== "standard" && style !== "decimal") {
    $rangeError("Intl.NumberFormat: notation \"" + notation + "\" with style \"" + style + "\" is not available");
  }
  const isMoney = style === "currency";
  const minor = isMoney ? $intlMinorDigits(currency) : 0;
  const digits = DigitsSetup(options, minor, isMoney ? minor : style === "percent" ? 0 : 3, notation === "compact");
  const compactDisplay = WordOption(options, "compactDisplay", "short|long", "short");
  const useGrouping = GroupingOption(options, notation === "compact");
  const signDisplay = WordOption(options, "signDisplay", "auto|never|always|exceptZero|negative", "auto");
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.numberingSystem = found[2] === undefined ? "latn" : found[2];
  resolved.style = style;
  let text = found[1] + "\n" + Line("style", style) + digits[0] + Line("useGrouping", useGrouping) + Line("signDisplay", signDisplay);
  if (isMoney) {
    resolved.currency = currency;
    resolved.currencyDisplay = currencyDisplay;
    resolved.currencySign = currencySign;
    text += Line("currency", currency) + Line("currencyDisplay", currencyDisplay);
  } else if (style === "unit") {
    resolved.unit = unit;
    resolved.unitDisplay = unitDisplay;
    text += Line("unit", unit) + Line("unitDisplay", unitDisplay);
  }
  CopyDataProperties(resolved, digits[1]);
  resolved.useGrouping = useGrouping;
  resolved.notation = notation;
  if (notation !== "standard") text += Line("notation", notation);
  if (notation === "compact") {
    resolved.compactDisplay = compactDisplay;
    text += Line("compactDisplay", compactDisplay);
  }
  resolved.signDisplay = signDisplay;
  RoundingOptions(resolved, digits);
  return [text, resolved];
}

// A number, a BigInt, or a string whose digits are kept.
function NumberOperand(value) {
  const primitive = $isObject(value) ? ToPrimitive(value, "number") : value;
  return typeof primitive === "bigint" || typeof primitive === "string" ? primitive : $toNumber(primitive);
}

function NumberFormat_(locales, options) {
  const proto = ProtoOrUsual(new.target, $$NUMBER_FORMAT_PROTO);
  const made = NumberSetup(locales, options);
  return $record(935, proto, made[0], made[1], undefined);
}

const NumberFormatPrototype = {
  get format() {
    NeedIntl(this, 935, "NumberFormat.prototype.format");
    const known = $recordGet(this, 2);
    if (known !== undefined) return known;
    const format = $recordGet(this, 0);
    const bound = $anonymous((value) => $intlNumber(format, NumberOperand(value), false));
    $recordSet(this, 2, bound);
    return bound;
  },
  formatToParts(value) {
    NeedIntl(this, 935, "NumberFormat.prototype.formatToParts");
    return PartsOf($intlNumber($recordGet(this, 0), NumberOperand(value), true));
  },
  formatRange(start, end) {
    NeedIntl(this, 935, "NumberFormat.prototype.formatRange");
    NotInIntl("formatRange");
  },
  formatRangeToParts(start, end) {
    NeedIntl(this, 935, "NumberFormat.prototype.formatRangeToParts");
    NotInIntl("formatRangeToParts");
  },
  resolvedOptions() {
    NeedIntl(this, 935, "NumberFormat.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// `toLocaleString` of a number or a BigInt, with locales or options.
function NumberToLocaleStringSlow(locales = undefined, options = undefined) {
  const made = NumberSetup(locales, options);
  return $intlNumber(made[0], $intlThis(this), false);
}

// --- PluralRules

function PluralRules_(locales, given) {
  if (new.target === undefined) $typeError("Constructor Intl.PluralRules requires 'new'");
  const proto = ProtoFor(new.target, $$PLURAL_RULES_PROTO);
  const list = CanonicalLocales(locales);
  const options = IntlOptions(given);
  MatcherOption(options);
  const found = $intlResolve(list, "");
  const type = WordOption(options, "type", "cardinal|ordinal", "cardinal");
  const digits = DigitsSetup(options, 0, 3, false);
  const format = found[1] + "\n" + Line("type", type) + digits[0];
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.type = type;
  CopyDataProperties(resolved, digits[1]);
  resolved.pluralCategories = undefined;
  RoundingOptions(resolved, digits);
  return $record(936, proto, format, resolved);
}

const PluralRulesPrototype = {
  select(value) {
    NeedIntl(this, 936, "PluralRules.prototype.select");
    return $intlPlural($recordGet(this, 0), $toNumber(value));
  },
  selectRange(start, end) {
    NeedIntl(this, 936, "PluralRules.prototype.selectRange");
    NotInIntl("selectRange");
  },
  resolvedOptions() {
    NeedIntl(this, 936, "PluralRules.prototype.resolvedOptions");
    const resolved = IntlCopy(this);
    resolved.pluralCategories = $intlPluralCategories($recordGet(this, 0));
    return resolved;
  },
};

// --- DateTimeFormat

// Fields with their possible values.
function DateFields() {
  return ["weekday", "narrow|short|long", "era", "narrow|short|long", "year", "2-digit|numeric",
    "month", "2-digit|numeric|narrow|short|long", "day", "2-digit|numeric", "hour", "2-digit|numeric", "minute", "2-digit|numeric",
    "second", "2-digit|numeric"];
}

// Whether the locale's pattern has two digits of a field for which the script requests any number of digits.
function HasTwoDigits(pattern, name) {
  const letters = name === "month" ? "MM" : name === "day" ? "dd" : name === "hour" ? "HH" : name === "minute" ? "mm" : name === "second" ? "ss" : undefined;
  if (letters === undefined) return false;
  const has = (letters) => $indexOf(pattern, letters, 0) !== -1;
  return has(letters) || (name === "month" && has("LL")) || (name === "hour" && has("hh"));
}

// `required` and `defaults`: "date", "time", "any", "all", by ECMA-402.
function DateSetup(locales, given, required, defaults) {
  const list = CanonicalLocales(locales);
  const options = IntlOptions(given);
  MatcherOption(options);
  const calendar = TypeOption(options, "calendar");
  const system = NumberingOption(options);
  const hour12 = FlagOption(options, "hour12");
  const cycle = WordOption(options, "hourCycle", "h11|h12|h23|h24", undefined);
  const found = $intlResolve(list, Keyword("nu", system) + "\n" + (hour12 === undefined ? Keyword("hc", cycle) : "hc!") + "\n" + Keyword("ca", calendar));
  const ca = found[4];
  if (ca !== undefined && ca !== "gregory" && ca !== "gregorian" && ca !== "iso8601") {
    $rangeError("Intl.DateTimeFormat: the calendar \"" + $shown(ca) + "\" is not available");
  }
  // The local time zone of programs is UTC.
  let zone = options.timeZone;
  zone = zone === undefined ? "UTC" : $toString(zone);
  const zoneName = $intlZone(zone);
  if (zoneName === undefined) $rangeError("Invalid time zone specified: " + $shown(zone));
  const fields = DateFields();
  const values = $create(null);
  let asked;
  for (let i = 0; i < fields.length; i += 2) {
    // Where ECMA-402 reads it.
    if (fields[i] === "hour" && options.dayPeriod !== undefined) {
      WordOption(options, "dayPeriod", "narrow|short|long", undefined);
      $rangeError("Intl.DateTimeFormat: dayPeriod is not available");
    }
    const value = WordOption(options, fields[i], fields[i + 1], undefined);
    if (value !== undefined) {
      values[fields[i]] = value;
      if (asked === undefined) asked = fields[i];
    }
  }
  const fraction = WholeOption(options, "fractionalSecondDigits", 1, 3, undefined);
  const zoneStyle = WordOption(options, "timeZoneName", "short|long|shortOffset|longOffset|shortGeneric|longGeneric", undefined);
  if (fraction !== undefined && values.second === undefined) {
    $rangeError("Intl.DateTimeFormat: fractionalSecondDigits without second is not available");
  }
  if (asked === undefined && fraction !== undefined) asked = "fractionalSecondDigits";
  if (asked === undefined && zoneStyle !== undefined) asked = "timeZoneName";
  WordOption(options, "formatMatcher", "basic|best fit", "best fit");
  const dateStyle = WordOption(options, "dateStyle", "full|long|medium|short", undefined);
  const timeStyle = WordOption(options, "timeStyle", "full|long|medium|short", undefined);
  const styled = dateStyle !== undefined || timeStyle !== undefined;
  if (styled) {
    if (asked !== undefined) $typeError("Can't set option " + asked + " when " + (dateStyle === undefined ? "timeStyle" : "dateStyle") + " is used");
    if (required === "date" && timeStyle !== undefined) $typeError("Invalid option : timeStyle");
    if (required === "time" && dateStyle !== undefined) $typeError("Invalid option : dateStyle");
  } else {
    const hasDate = values.weekday !== undefined || values.year !== undefined || values.month !== undefined || values.day !== undefined;
    const hasTime = values.hour !== undefined || values.minute !== undefined || values.second !== undefined;
    const missing = !((required !== "time" && hasDate) || (required !== "date" && hasTime));
    if ((missing && defaults !== "time") || (values.era !== undefined && values.year === undefined)) {
      values.year = "numeric";
      values.month = "numeric";
      values.day = "numeric";
    }
    if (missing && defaults !== "date") {
      values.hour = "numeric";
      values.minute = "numeric";
      values.second = "numeric";
    }
  }
  let text = found[1] + "\n" + Line("timeZone", zoneName) + Line("fractionalSecondDigits", fraction) + Line("timeZoneName", zoneStyle) +
    Line("dateStyle", dateStyle) + Line("timeStyle", timeStyle) + Line("hourCycle", hour12 === undefined ? found[3] : hour12 ? "12" : "24");
  for (let i = 0; i < fields.length; i += 2) text += Line(fields[i], values[fields[i]]);
  const made = $intlDateFacts(text);
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.calendar = ca === "iso8601" ? "iso8601" : "gregory";
  resolved.numberingSystem = found[2] === undefined ? "latn" : found[2];
  resolved.timeZone = zoneName;
  if (made[0] !== undefined) {
    resolved.hourCycle = made[0];
    resolved.hour12 = made[0] === "h11" || made[0] === "h12";
  }
  if (styled) {
    if (dateStyle !== undefined) resolved.dateStyle = dateStyle;
    if (timeStyle !== undefined) resolved.timeStyle = timeStyle;
    return [text, resolved];
  }
  for (let i = 0; i < fields.length; i += 2) {
    const value = values[fields[i]];
    if (value !== undefined) resolved[fields[i]] = value === "numeric" && HasTwoDigits(made[1], fields[i]) ? "2-digit" : value;
  }
  if (fraction !== undefined) resolved.fractionalSecondDigits = fraction;
  if (zoneStyle !== undefined) resolved.timeZoneName = zoneStyle;
  return [text, resolved];
}

function DateTimeFormat_(locales, options) {
  const proto = ProtoOrUsual(new.target, $$DATE_TIME_FORMAT_PROTO);
  const made = DateSetup(locales, options, "any", "date");
  return $record(931, proto, made[0], made[1], undefined);
}

function DateOperand(value) { return value === undefined ? $intlNow() : $toNumber(value); }

const DateTimeFormatPrototype = {
  get format() {
    NeedIntl(this, 931, "DateTimeFormat.prototype.format");
    const known = $recordGet(this, 2);
    if (known !== undefined) return known;
    const format = $recordGet(this, 0);
    const bound = $anonymous((date) => $intlDate(format, DateOperand(date), false));
    $recordSet(this, 2, bound);
    return bound;
  },
  formatToParts(date) {
    NeedIntl(this, 931, "DateTimeFormat.prototype.formatToParts");
    return PartsOf($intlDate($recordGet(this, 0), DateOperand(date), true));
  },
  formatRange(startDate, endDate) {
    NeedIntl(this, 931, "DateTimeFormat.prototype.formatRange");
    NotInIntl("formatRange");
  },
  formatRangeToParts(startDate, endDate) {
    NeedIntl(this, 931, "DateTimeFormat.prototype.formatRangeToParts");
    NotInIntl("formatRangeToParts");
  },
  resolvedOptions() {
    NeedIntl(this, 931, "DateTimeFormat.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// The locale methods of a date that is valid, with locales or options.
function DateLocaleText(date, locales, options, required, defaults) {
  const made = DateSetup(locales, options, required, defaults);
  return $intlDate(made[0], $intlThis(date), false);
}
function DateToLocaleStringSlow(locales = undefined, options = undefined) { return DateLocaleText(this, locales, options, "any", "all"); }
function DateToLocaleDateStringSlow(locales = undefined, options = undefined) { return DateLocaleText(this, locales, options, "date", "date"); }
function DateToLocaleTimeStringSlow(locales = undefined, options = undefined) { return DateLocaleText(this, locales, options, "time", "time"); }

// --- Intl

const IntlStatics = {
  supportedLocalesOf(locales, options = undefined) {
    const list = CanonicalLocales(locales);
    MatcherOption(IntlOptions(options));
    const supported = [];
    for (let i = 0; i < list.length; i++) if ($intlSupported(list[i])) $push(supported, list[i]);
    return supported;
  },
};

const IntlFunctions = {
  getCanonicalLocales(locales) { return CanonicalLocales(locales); },
  supportedValuesOf(key) {
    const name = $toString(key);
    const values = $intlValues(name);
    if (values === undefined) $rangeError("Invalid key : " + $shown(name));
    return values;
  },
};
