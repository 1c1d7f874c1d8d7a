const f = require('date-fns');
const { de, ja, fr } = require('date-fns/locale');
const d = new Date(2024, 1, 29, 13, 5, 9, 7);
console.log(f.format(d, "yyyy-MM-dd'T'HH:mm:ss.SSSxxx EEEE do MMMM, QQQ, I, R, wo"), f.format(d, 'PPPPpppp', { locale: de }), f.format(d, 'PPPP', { locale: ja }));
console.log(f.addMonths(d, 12).toISOString(), f.differenceInCalendarDays(new Date(2025, 0, 1), d), f.formatDistance(d, new Date(2024, 5, 1), { addSuffix: true, locale: fr }));
console.log(f.parse('03/04/2021 05:06', 'dd/MM/yyyy HH:mm', new Date(0)).toISOString(), f.parseISO('2020-12-31T23:59:59+02:00').toISOString(), f.isValid(new Date(NaN)));
console.log(f.eachWeekOfInterval({ start: d, end: f.addDays(d, 20) }).map((x) => x.toISOString()), f.intervalToDuration({ start: new Date(0), end: d }), f.formatDuration({ years: 2, months: 1, minutes: 3 }));
console.log(f.startOfQuarter(d).toString(), f.getISOWeek(d), f.isLeapYear(d), f.lastDayOfMonth(d).getDate(), f.formatRelative(f.subDays(d, 3), d), f.closestTo(d, [new Date(0), new Date(2030, 1)]));
