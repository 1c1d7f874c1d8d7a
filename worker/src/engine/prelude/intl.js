// `Intl` itself.
0,function (_own, _native, captured) {
  'use strict';
  const { RangeError, Object, Symbol } = captured.globals;
  const { own, canonicalList } = captured.part('intl_base');
  const { NumberFormat, PluralRules } = captured.part('intl_number');
  const { DateTimeFormat } = captured.part('intl_date');
  const { Collator, ListFormat, RelativeTimeFormat, Segmenter, DisplayNames, Locale } = captured.part('intl_text');
  const { defineProperty } = Object;

  const Intl = {};
  defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });
  const members = { Collator, DateTimeFormat, DisplayNames, ListFormat, Locale, NumberFormat, PluralRules, RelativeTimeFormat, Segmenter,
    getCanonicalLocales(locales) { return canonicalList(locales); },
    supportedValuesOf(key) {
      switch (`${key}`) {
        case 'calendar': case 'collation': case 'currency': case 'numberingSystem': case 'unit': return own.values(`${key}`);
        case 'timeZone': return own.timeZones();
        default: throw new RangeError(`Invalid key : ${key}`);
      }
    },
  };
  for (const name of Object.keys(members)) defineProperty(Intl, name, { value: members[name], writable: true, configurable: true });
  return { Intl };
}
