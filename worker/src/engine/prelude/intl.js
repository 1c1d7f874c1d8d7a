// `Intl` itself.
(function (_own, _native, captured) {
  'use strict';
  const { RangeError, Object, Symbol } = captured.globals;
  const { own, canonicalList, systems } = captured.part('intl_base');
  const { NumberFormat, PluralRules, UNITS } = captured.part('intl_number');
  const { DateTimeFormat } = captured.part('intl_date');
  const { Collator, ListFormat, RelativeTimeFormat, Segmenter, DisplayNames, Locale } = captured.part('intl_text');
  const { defineProperty } = Object;

  const Intl = {};
  defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });
  const CURRENCIES = ['AED', 'ARS', 'AUD', 'BRL', 'CAD', 'CHF', 'CLP', 'CNY', 'COP', 'CZK', 'DKK', 'EGP', 'EUR', 'GBP', 'HKD', 'HUF', 'IDR',
    'ILS', 'INR', 'JPY', 'KRW', 'MAD', 'MXN', 'MYR', 'NGN', 'NOK', 'NZD', 'PEN', 'PHP', 'PLN', 'RON', 'RUB', 'SAR', 'SEK', 'SGD', 'THB',
    'TRY', 'TWD', 'UAH', 'USD', 'VND', 'ZAR'];
  const members = { Collator, DateTimeFormat, DisplayNames, ListFormat, Locale, NumberFormat, PluralRules, RelativeTimeFormat, Segmenter,
    getCanonicalLocales(locales) { return canonicalList(locales); },
    supportedValuesOf(key) {
      switch (`${key}`) {
        case 'calendar': return ['gregory', 'iso8601'];
        case 'collation': return ['emoji', 'eor', 'phonebk', 'pinyin', 'stroke', 'trad', 'zhuyin'];
        case 'currency': return [...CURRENCIES];
        case 'numberingSystem': return [...systems];
        case 'timeZone': return own.timeZones().filter((name) => /^[A-Z][a-z]+\//.test(name)).sort();
        case 'unit': return [...UNITS];
        default: throw new RangeError(`Invalid key : ${key}`);
      }
    },
  };
  for (const name of Object.keys(members)) defineProperty(Intl, name, { value: members[name], writable: true, configurable: true });
  return { Intl };
})
