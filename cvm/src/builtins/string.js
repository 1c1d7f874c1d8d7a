// `String`: what looks for methods on its arguments or calls them. ECMA-262 22.1.

function StringSlow_(...args) {
  const made = $construct($$STRING, $$STRING, args);
  $setProto(made, ProtoFor(new.target, $$STRING_PROTO));
  return made;
}

// ECMA-262 7.2.6
function IsRegExp(value) {
  if (!$isObject(value)) return false;
  const matcher = value[$$SYM_MATCH];
  if (matcher !== undefined) return matcher ? true : false;
  return $isRegExp(value);
}

function TextOfThis(value, method) {
  if (value === undefined || value === null) $typeError("String.prototype." + method + " called on null or undefined");
  return $toString(value);
}

function NeedleOf(search, method) {
  if (IsRegExp(search)) {
    $typeError("First argument to String.prototype." + method + " must not be a regular expression");
  }
  return $toString(search);
}

function IncludesSlow(search, position) {
  const text = TextOfThis(this, "includes");
  const needle = NeedleOf(search, "includes");
  return $indexOf(text, needle, $toInteger(position)) !== -1;
}

function StartsWithSlow(search, position) {
  const text = TextOfThis(this, "startsWith");
  const needle = NeedleOf(search, "startsWith");
  const at = $toInteger(position);
  return $standsAt(text, needle, at < 0 ? 0 : at > text.length ? text.length : at);
}

function EndsWithSlow(search, position) {
  const text = TextOfThis(this, "endsWith");
  const needle = NeedleOf(search, "endsWith");
  const at = position === undefined ? text.length : $toInteger(position);
  return $standsAt(text, needle, (at < 0 ? 0 : at > text.length ? text.length : at) - needle.length);
}

// ECMA-262 22.1.3.19.1
function GetSubstitution(matched, text, position, captures, named, template) {
  let values;
  if (named !== undefined) {
    values = [];
    const names = $templateNames(template, captures.length);
    for (let i = 0; i < names.length; i++) {
      const value = named[names[i]];
      $push(values, value === undefined ? "" : $toString(value));
    }
  }
  return $substitute(matched, text, position, captures, template, values);
}

// A method of an object argument; primitives are not asked.
function MethodOf(value, key) {
  if (!$isObject(value)) return undefined;
  const method = value[key];
  return method === null ? undefined : method;
}

function CheckCoercible(value, method) {
  if (value === undefined || value === null) $typeError("String.prototype." + method + " called on null or undefined");
}

function RequireGlobal(regexp, method) {
  const flags = regexp.flags;
  if (flags === undefined || flags === null) $typeError("flags of a regular expression are missing");
  if ($indexOf($toString(flags), "g", 0) === -1) {
    $typeError("String.prototype." + method + " called with a non-global RegExp argument");
  }
}

function RegExpOf(pattern, flags) {
  return $regexpAlloc($$REGEXP_PROTO, pattern === undefined ? "" : $toString(pattern), flags);
}

const StringMethods = {
  match(regexp) {
    CheckCoercible(this, "match");
    const method = MethodOf(regexp, $$SYM_MATCH);
    if (method !== undefined) return $call(method, regexp, this);
    const text = $toString(this);
    const made = RegExpOf(regexp, "");
    return $call(made[$$SYM_MATCH], made, text);
  },
  matchAll(regexp) {
    CheckCoercible(this, "matchAll");
    if ($isObject(regexp)) {
      if (IsRegExp(regexp)) RequireGlobal(regexp, "matchAll");
      const method = MethodOf(regexp, $$SYM_MATCH_ALL);
      if (method !== undefined) return $call(method, regexp, this);
    }
    const text = $toString(this);
    const made = RegExpOf(regexp, "g");
    return $call(made[$$SYM_MATCH_ALL], made, text);
  },
  replace(searchValue, replaceValue) {
    CheckCoercible(this, "replace");
    const method = MethodOf(searchValue, $$SYM_REPLACE);
    if (method !== undefined) return $call(method, searchValue, this, replaceValue);
    const text = $toString(this);
    const needle = $toString(searchValue);
    const functional = $isCallable(replaceValue);
    const template = functional ? undefined : $toString(replaceValue);
    const at = $indexOf(text, needle, 0);
    if (at === -1) return text;
    const replacement = functional
      ? $toString($call(replaceValue, undefined, needle, at, text))
      : GetSubstitution(needle, text, at, [], undefined, template);
    return $substring(text, 0, at) + replacement + $substring(text, at + needle.length);
  },
  replaceAll(searchValue, replaceValue) {
    CheckCoercible(this, "replaceAll");
    if ($isObject(searchValue)) {
      if (IsRegExp(searchValue)) RequireGlobal(searchValue, "replaceAll");
      const method = MethodOf(searchValue, $$SYM_REPLACE);
      if (method !== undefined) return $call(method, searchValue, this, replaceValue);
    }
    const text = $toString(this);
    const needle = $toString(searchValue);
    const functional = $isCallable(replaceValue);
    const template = functional ? undefined : $toString(replaceValue);
    const step = needle.length > 1 ? needle.length : 1;
    let result = "";
    let end = 0;
    let at = $indexOf(text, needle, 0);
    while (at !== -1) {
      const replacement = functional
        ? $toString($call(replaceValue, undefined, needle, at, text))
        : GetSubstitution(needle, text, at, [], undefined, template);
      result = result + $substring(text, end, at) + replacement;
      end = at + needle.length;
      at = at + step > text.length ? -1 : $indexOf(text, needle, at + step);
    }
    return end < text.length ? result + $substring(text, end) : result;
  },
  search(regexp) {
    CheckCoercible(this, "search");
    const method = MethodOf(regexp, $$SYM_SEARCH);
    if (method !== undefined) return $call(method, regexp, this);
    const text = $toString(this);
    const made = RegExpOf(regexp, "");
    return $call(made[$$SYM_SEARCH], made, text);
  },
  split(separator, limit) {
    CheckCoercible(this, "split");
    const method = MethodOf(separator, $$SYM_SPLIT);
    if (method !== undefined) return $call(method, separator, this, limit);
    const text = $toString(this);
    const most = limit === undefined ? 4294967295 : $toUint32(limit);
    const needle = $toString(separator);
    if (most === 0) return [];
    if (separator === undefined) return [text];
    if (text === "") return needle === "" ? [] : [text];
    return $splitText(text, needle, most);
  },
  [$$SYM_ITERATOR]() {
    CheckCoercible(this, "[Symbol.iterator]");
    return $record(902, $$STRING_ITERATOR_PROTO, $toString(this), 0);
  },
};

// Slots: text, next index; the index is beyond the end once it is done.
const StringIteratorMethods = {
  next() {
    if ($recordTag(this) !== 902) $typeError("next called on something that is not a String Iterator");
    const text = $recordGet(this, 0);
    const at = $recordGet(this, 1);
    if (at >= text.length) {
      $recordSet(this, 0, "");
      return { value: undefined, done: true };
    }
    const end = at + $codePointLength(text, at);
    $recordSet(this, 1, end);
    return { value: $substring(text, at, end), done: false };
  },
};

const StringStatics = {
  raw(template, ...substitutions) {
    const cooked = $toObject(template);
    const literals = $toObject(cooked.raw);
    const length = $toLength(literals.length);
    let result = "";
    for (let i = 0; i < length; i++) {
      result = result + $toString(literals[i]);
      if (i + 1 < length && i < substitutions.length) result = result + $toString(substitutions[i]);
    }
    return result;
  },
};
