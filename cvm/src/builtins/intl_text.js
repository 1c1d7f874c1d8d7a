// `Intl` of texts: `Collator`, `ListFormat`, `RelativeTimeFormat`, `Segmenter`, `DisplayNames`, `Locale`. ECMA-402.

// --- Collator

function CollatorSetup(locales, given) {
  const list = CanonicalLocales(locales);
  const options = IntlOptions(given);
  const usage = WordOption(options, "usage", "sort|search", "sort");
  MatcherOption(options);
  const numeric = FlagOption(options, "numeric");
  const caseFirst = WordOption(options, "caseFirst", "upper|lower|false", undefined);
  const found = $intlResolve(list, "co\n" + Keyword("kf", caseFirst) + "\n" + Keyword("kn", numeric));
  const sensitivity = WordOption(options, "sensitivity", "base|accent|case|variant", "variant");
  const ignorePunctuation = FlagOption(options, "ignorePunctuation") === true;
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.usage = usage;
  resolved.sensitivity = sensitivity;
  resolved.ignorePunctuation = ignorePunctuation;
  resolved.collation = found[2] === undefined || found[2] === "" ? "default" : found[2];
  resolved.numeric = found[4] !== undefined && found[4] !== "false";
  resolved.caseFirst = found[3] === undefined ? "false" : found[3];
  return [found[1] + "\n" + Line("sensitivity", sensitivity) + Line("ignorePunctuation", ignorePunctuation), resolved];
}

function Collator_(locales, options) {
  const proto = ProtoOrUsual(new.target, $$COLLATOR_PROTO);
  const made = CollatorSetup(locales, options);
  return $record(930, proto, made[0], made[1], undefined);
}

const CollatorPrototype = {
  get compare() {
    NeedIntl(this, 930, "Collator.prototype.compare");
    const known = $recordGet(this, 2);
    if (known !== undefined) return known;
    const format = $recordGet(this, 0);
    const bound = $anonymous((x, y) => $intlCompare(format, $toString(x), $toString(y)));
    $recordSet(this, 2, bound);
    return bound;
  },
  resolvedOptions() {
    NeedIntl(this, 930, "Collator.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

function StringLocaleCompareSlow(that, locales = undefined, options = undefined) {
  const text = $toString(this);
  const other = $toString(that);
  return $intlCompare(CollatorSetup(locales, options)[0], text, other);
}

function LocaleCase(text, locales, upper) {
  const list = CanonicalLocales(locales);
  return $intlCase(list.length > 0 ? list[0] : "en-US", upper, text);
}
function StringToLocaleUpperCaseSlow(locales = undefined) { return LocaleCase($toString(this), locales, true); }
function StringToLocaleLowerCaseSlow(locales = undefined) { return LocaleCase($toString(this), locales, false); }

// --- ListFormat

function ListFormat_(locales, given) {
  if (new.target === undefined) $typeError("Constructor Intl.ListFormat requires 'new'");
  const proto = ProtoFor(new.target, $$LIST_FORMAT_PROTO);
  const list = CanonicalLocales(locales);
  const options = OptionsOf(given);
  MatcherOption(options);
  const found = $intlResolve(list, "");
  const type = WordOption(options, "type", "conjunction|disjunction|unit", "conjunction");
  const style = WordOption(options, "style", "long|short|narrow", "long");
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.type = type;
  resolved.style = style;
  return $record(933, proto, found[1] + "\n" + Line("type", type) + Line("style", style), resolved);
}

function StringList(iterable) {
  const items = [];
  if (iterable === undefined) return items;
  for (const item of iterable) {
    if (typeof item !== "string") $typeError("Iterable yielded a non-String value");
    $push(items, item);
  }
  return items;
}

const ListFormatPrototype = {
  format(list) {
    NeedIntl(this, 933, "ListFormat.prototype.format");
    return $intlList($recordGet(this, 0), StringList(list));
  },
  formatToParts(list) {
    NeedIntl(this, 933, "ListFormat.prototype.formatToParts");
    const items = StringList(list);
    const literals = $intlListLiterals($recordGet(this, 0), items.length);
    const parts = [];
    for (let i = 0; i < literals.length; i++) {
      if (i > 0) $push(parts, { type: "element", value: items[i - 1] });
      if (literals[i] !== "") $push(parts, { type: "literal", value: literals[i] });
    }
    return parts;
  },
  resolvedOptions() {
    NeedIntl(this, 933, "ListFormat.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// --- RelativeTimeFormat

function RelativeTimeFormat_(locales, given) {
  if (new.target === undefined) $typeError("Constructor Intl.RelativeTimeFormat requires 'new'");
  const proto = ProtoFor(new.target, $$RELATIVE_TIME_FORMAT_PROTO);
  const list = CanonicalLocales(locales);
  const options = IntlOptions(given);
  MatcherOption(options);
  const found = $intlResolve(list, Keyword("nu", NumberingOption(options)));
  const style = WordOption(options, "style", "long|short|narrow", "long");
  const numeric = WordOption(options, "numeric", "always|auto", "always");
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.style = style;
  resolved.numeric = numeric;
  resolved.numberingSystem = found[2] === undefined ? "latn" : found[2];
  return $record(937, proto, found[1] + "\n" + Line("style", style) + Line("numeric", numeric), resolved);
}

function RelativeUnit(value) {
  const text = $toString(value);
  const unit = $intlTimeUnit(text);
  if (unit === undefined) $rangeError("Invalid unit argument for format() '" + $shown(text) + "'");
  return unit;
}

const RelativeTimeFormatPrototype = {
  format(value, unit) {
    NeedIntl(this, 937, "RelativeTimeFormat.prototype.format");
    const number = $toNumber(value);
    return $intlRelative($recordGet(this, 0), number, RelativeUnit(unit));
  },
  formatToParts(value, unit) {
    NeedIntl(this, 937, "RelativeTimeFormat.prototype.formatToParts");
    const number = $toNumber(value);
    const name = RelativeUnit(unit);
    const text = $intlRelative($recordGet(this, 0), number, name);
    const format = NumberSetup($recordGet(this, 1).locale, undefined)[0];
    const list = $intlNumber(format, $intlAmount(number), true);
    let shown = "";
    for (let i = 1; i < list.length; i += 2) shown += list[i];
    const at = $indexOf(text, shown, 0);
    if (at === -1) return [{ type: "literal", value: text }];
    const parts = [];
    if (at > 0) $push(parts, { type: "literal", value: $substring(text, 0, at) });
    for (let i = 0; i < list.length; i += 2) $push(parts, { type: list[i], value: list[i + 1], unit: name });
    const end = at + shown.length;
    if (end < text.length) $push(parts, { type: "literal", value: $substring(text, end, text.length) });
    return parts;
  },
  resolvedOptions() {
    NeedIntl(this, 937, "RelativeTimeFormat.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// --- Segmenter: boundaries are found when they are needed, so that nothing but a position is stored.

function Segmenter_(locales, given) {
  if (new.target === undefined) $typeError("Constructor Intl.Segmenter requires 'new'");
  const proto = ProtoFor(new.target, $$SEGMENTER_PROTO);
  const list = CanonicalLocales(locales);
  const options = OptionsOf(given);
  MatcherOption(options);
  const found = $intlResolve(list, "");
  const granularity = WordOption(options, "granularity", "grapheme|word|sentence", "grapheme");
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.granularity = granularity;
  return $record(938, proto, granularity, resolved);
}

const SegmenterPrototype = {
  segment(text) {
    NeedIntl(this, 938, "Segmenter.prototype.segment");
    return $record(939, $$SEGMENTS_PROTO, $toString(text), $recordGet(this, 0));
  },
  resolvedOptions() {
    NeedIntl(this, 938, "Segmenter.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// `found`: the segment's end and whether it is like a word.
function SegmentObject(text, granularity, start, found) {
  const segment = { segment: $substring(text, start, found[0]), index: start, input: text };
  if (granularity === "word") $createData(segment, "isWordLike", found[1]);
  return segment;
}

const SegmentsPrototype = {
  containing(index) {
    NeedIntl(this, 939, "Segments.prototype.containing");
    const text = $recordGet(this, 0);
    const granularity = $recordGet(this, 1);
    const at = $toInteger(index);
    if (at < 0 || at >= text.length) return undefined;
    let start = 0;
    while (true) {
      const found = $intlSegmentAt(granularity, text, start, at);
      start = found[0];
      if (found[1] !== undefined) return SegmentObject(text, granularity, start, [found[1], found[2]]);
    }
  },
  [$$SYM_ITERATOR]() {
    NeedIntl(this, 939, "Segments.prototype[Symbol.iterator]");
    return $record(940, $$SEGMENT_ITERATOR_PROTO, $recordGet(this, 0), $recordGet(this, 1), 0);
  },
};

const SegmentIteratorPrototype = {
  next() {
    NeedIntl(this, 940, "Segmenter String Iterator.next");
    const text = $recordGet(this, 0);
    const start = $recordGet(this, 2);
    if (start >= text.length) return { value: undefined, done: true };
    const granularity = $recordGet(this, 1);
    const found = $intlSegment(granularity, text, start);
    $recordSet(this, 2, found[0]);
    return { value: SegmentObject(text, granularity, start, found), done: false };
  },
};

// --- DisplayNames

function DisplayNames_(locales, given) {
  if (new.target === undefined) $typeError("Constructor Intl.DisplayNames requires 'new'");
  const proto = ProtoFor(new.target, $$DISPLAY_NAMES_PROTO);
  const list = CanonicalLocales(locales);
  if (given === undefined) $typeError("Cannot convert undefined or null to object");
  const options = OptionsOf(given);
  MatcherOption(options);
  const found = $intlResolve(list, "");
  const style = WordOption(options, "style", "narrow|short|long", "long");
  const type = WordOption(options, "type", "language|region|script|currency|calendar|dateTimeField", undefined);
  if (type === undefined) $typeError("Required option \"type\" must not be undefined");
  if (type !== "language" && type !== "region" && type !== "script") $rangeError("Intl.DisplayNames: the type \"" + type + "\" is not available");
  const fallback = WordOption(options, "fallback", "code|none", "code");
  const languageDisplay = WordOption(options, "languageDisplay", "dialect|standard", "dialect");
  const resolved = $create(null);
  resolved.locale = found[0];
  resolved.style = style;
  resolved.type = type;
  resolved.fallback = fallback;
  if (type === "language") resolved.languageDisplay = languageDisplay;
  return $record(932, proto, found[1] + "\n" + Line("type", type) + Line("style", style) + Line("languageDisplay", languageDisplay), resolved);
}

const DisplayNamesPrototype = {
  of(code) {
    NeedIntl(this, 932, "DisplayNames.prototype.of");
    const resolved = $recordGet(this, 1);
    const found = $intlName($recordGet(this, 0), resolved.type, $toString(code));
    if (found === undefined) $rangeError("Invalid argument to Intl.DisplayNames.prototype.of");
    return found[1] === undefined && resolved.fallback === "code" ? found[0] : found[1];
  },
  resolvedOptions() {
    NeedIntl(this, 932, "DisplayNames.prototype.resolvedOptions");
    return IntlCopy(this);
  },
};

// --- Locale: a record of its tag.

function TextOption(options, name) {
  const value = options[name];
  return value === undefined ? undefined : $toString(value);
}

function Locale_(tag, given) {
  if (new.target === undefined) $typeError("Constructor Intl.Locale requires 'new'");
  const proto = ProtoFor(new.target, $$LOCALE_PROTO);
  if (typeof tag !== "string" && !$isObject(tag)) $typeError("First argument to Intl.Locale constructor can't be empty or missing");
  const text = $recordTag(tag) === 934 ? $recordGet(tag, 0) : $toString(tag);
  const options = IntlOptions(given);
  const first = CanonicalTag(text);
  const language = TextOption(options, "language");
  const script = TextOption(options, "script");
  const region = TextOption(options, "region");
  const calendar = TypeOption(options, "calendar");
  const collation = TypeOption(options, "collation");
  const cycle = WordOption(options, "hourCycle", "h11|h12|h23|h24", undefined);
  const caseFirst = WordOption(options, "caseFirst", "upper|lower|false", undefined);
  const numeric = FlagOption(options, "numeric");
  const system = TypeOption(options, "numberingSystem");
  const made = $intlLocale(first, language, script, region, calendar, collation, cycle, caseFirst,
    numeric === undefined ? undefined : numeric ? "" : "false", system);
  if (made === undefined) $rangeError("Incorrect locale information provided");
  return $record(934, proto, made);
}

function LocalePart(locale, name) {
  NeedIntl(locale, 934, "Locale.prototype." + name);
  return $intlLocalePart($recordGet(locale, 0), name);
}

const LocalePrototype = {
  get baseName() { return LocalePart(this, "baseName"); },
  get calendar() { return LocalePart(this, "calendar"); },
  get caseFirst() { return LocalePart(this, "caseFirst"); },
  get collation() { return LocalePart(this, "collation"); },
  get hourCycle() { return LocalePart(this, "hourCycle"); },
  get language() { return LocalePart(this, "language"); },
  get numberingSystem() { return LocalePart(this, "numberingSystem"); },
  get numeric() {
    const value = LocalePart(this, "numeric");
    return value !== undefined && value !== "false";
  },
  get region() { return LocalePart(this, "region"); },
  get script() { return LocalePart(this, "script"); },
  maximize() {
    NeedIntl(this, 934, "Locale.prototype.maximize");
    return $record(934, $$LOCALE_PROTO, $intlLikely($recordGet(this, 0), true));
  },
  minimize() {
    NeedIntl(this, 934, "Locale.prototype.minimize");
    return $record(934, $$LOCALE_PROTO, $intlLikely($recordGet(this, 0), false));
  },
  toString() {
    NeedIntl(this, 934, "Locale.prototype.toString");
    return $recordGet(this, 0);
  },
};
