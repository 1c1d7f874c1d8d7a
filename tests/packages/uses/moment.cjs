const moment = require('moment');
const m = moment.utc('2024-02-29T12:34:56.789Z');
console.log(m.format(), m.format('dddd, MMMM Do YYYY, h:mm:ss a, E, gggg-[W]ww, DDDo'), m.clone().add(1, 'M').endOf('quarter').toISOString(), moment.version);
moment.locale('fr'); console.log(moment.utc(0).format('LLLL'), moment.duration(-5, 'hours').humanize(true)); moment.locale('en');
console.log(m.from(moment.utc('2025-05-01')), m.calendar(moment.utc('2024-03-01')), m.diff(moment.utc('2020-01-01'), 'months', true), moment.duration('P1Y2M3DT4H5M6S').toISOString());
console.log(moment('12-25-1995', 'MM-DD-YYYY', true).isValid(), moment('nope', 'YYYY', true).isValid(), m.isBetween('2024-01-01', '2025-01-01'), moment.utc([2010, 1, 14]).toObject());
console.log(moment.localeData('en').months().slice(0, 2), m.toArray(), m.isLeapYear(), moment.parseZone('2013-01-01T00:00:00-13:00').utcOffset(), m);
