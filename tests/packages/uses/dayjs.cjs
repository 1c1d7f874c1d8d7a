const dayjs = require('dayjs');
for (const plugin of ['utc', 'timezone', 'relativeTime', 'duration', 'advancedFormat', 'customParseFormat', 'isoWeek', 'localizedFormat']) dayjs.extend(require(`dayjs/plugin/${plugin}`));
require('dayjs/locale/de');
const d = dayjs.utc('2024-02-29T12:34:56.789Z');
console.log(d.format(), d.format('dddd, MMMM D, YYYY h:mm A [week] WW Q Do X'), d.add(1, 'year').format('YYYY-MM-DD'), d.endOf('month').toISOString(), d.locale('de').format('LLLL'));
console.log(d.tz('America/New_York').format('YYYY-MM-DD HH:mm:ss Z'), d.tz('Asia/Tokyo').format(), dayjs.tz('2024-07-01 10:00', 'Europe/Rome').utc().format());
console.log(dayjs('2020-01-01').from('2021-06-01'), dayjs.duration(3661, 'seconds').humanize(), dayjs.duration({ hours: 25, minutes: 3 }).format('D H:mm:ss'));
console.log(dayjs('13-02-2021', 'DD-MM-YYYY').format('YYYY/MM/DD'), dayjs('x').isValid(), d.diff('2023-01-01', 'day'), d.isoWeek(), JSON.stringify({ d }));
