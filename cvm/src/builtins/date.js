// `Date`: what calls methods of other objects.

function DateSlow_(...args) {
  const made = $construct($$DATE, $$DATE, args);
  $setProto(made, ProtoFor(new.target, $$DATE_PROTO));
  return made;
}

// ECMA-262 7.1.1.1, without looking at Symbol.toPrimitive.
function OrdinaryToPrimitive(input, hint) {
  const first = hint === "string" ? input.toString : input.valueOf;
  if ($isCallable(first)) {
    const result = $call(first, input);
    if (!$isObject(result)) return result;
  }
  const second = hint === "string" ? input.valueOf : input.toString;
  if ($isCallable(second)) {
    const result = $call(second, input);
    if (!$isObject(result)) return result;
  }
  $typeError("Cannot convert object to primitive value");
}

// Setters with objects as arguments; the parts are numbered from the month on.
function SetParts(date, from, most, args) {
  const time = $dateTime(date);
  const numbers = [];
  for (let i = 0; i < most && (i === 0 || i < args.length); i++) $push(numbers, $toNumber(args[i]));
  return $dateSet(date, time, from, numbers);
}

function SetMonthSlow(...args) { return SetParts(this, 0, 2, args); }
function SetDateSlow(...args) { return SetParts(this, 1, 1, args); }
function SetHoursSlow(...args) { return SetParts(this, 2, 4, args); }
function SetMinutesSlow(...args) { return SetParts(this, 3, 3, args); }
function SetSecondsSlow(...args) { return SetParts(this, 4, 2, args); }
function SetMillisecondsSlow(...args) { return SetParts(this, 5, 1, args); }

const DateMethods = {
  toJSON(key) {
    const o = $toObject(this);
    const time = ToPrimitive(o, "number");
    if (typeof time === "number" && time - time !== 0) return null;
    return o.toISOString();
  },
  [$$SYM_TO_PRIMITIVE](hint) {
    if (!$isObject(this)) $typeError("Date.prototype[Symbol.toPrimitive] called on non-object");
    if (hint === "string" || hint === "default") return OrdinaryToPrimitive(this, "string");
    if (hint === "number") return OrdinaryToPrimitive(this, "number");
    $typeError("Invalid hint: " + $shown(hint));
  },
};
