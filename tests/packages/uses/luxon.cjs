const { DateTime, Duration, Interval, Info, Settings } = require('luxon');
Settings.defaultZone = 'utc'; Settings.defaultLocale = 'en-US';
const d = DateTime.fromISO('2024-02-29T12:34:56.789');
console.log(d.toISO(), d.setZone('America/New_York').toString(), d.setZone('Asia/Kolkata').toFormat('yyyy-MM-dd HH:mm ZZ'), d.plus({ months: 1, days: 3 }).endOf('week').toISO());
console.log(d.toLocaleString(DateTime.DATE_FULL), d.toFormat('cccc d LLLL yyyy, h:mm a'), d.setLocale('de').toFormat('cccc, d. LLLL yyyy'), d.toRFC2822(), d.toHTTP());
console.log(DateTime.fromFormat('May 25 1982', 'LLLL dd yyyy').toISODate(), DateTime.fromISO('bad').isValid, DateTime.fromISO('2024-13-01').invalidReason, d.weekNumber, d.ordinal, d.daysInMonth);
console.log(Duration.fromObject({ hours: 30, minutes: 90 }).normalize().toObject(), Duration.fromISO('PT2H7M').toHuman(), Interval.after(d, { days: 3 }).splitBy({ days: 1 }).map((i) => i.toISODate()));
console.log(Info.months('short'), Info.weekdays('long', { locale: 'fr' }), d.diff(DateTime.fromISO('2020-01-01'), ['years', 'months', 'days']).toObject(), d.toRelative({ base: d.plus({ days: 5 }) }));
