//! Owns the list of the data that the formatters read: types of ICU4X, each with the macro of its crate of data, from which
//! `intl/datagen` writes `intl/data/formats.postcard`. Both crates compile this file, so that the blob has no data that nothing
//! reads and lacks none.

/// Passes the list to a macro: the types with a value for each locale, and those with one value.
macro_rules! with_markers {
    ($callback:ident) => {
        $callback! {
            by_locale {
                icu_decimal::provider::DecimalCompactLongV1 = icu_decimal_data::impl_decimal_compact_long_v1;
                icu_decimal::provider::DecimalCompactShortV1 = icu_decimal_data::impl_decimal_compact_short_v1;
                icu_decimal::provider::DecimalDigitsV1 = icu_decimal_data::impl_decimal_digits_v1;
                icu_decimal::provider::DecimalSymbolsV1 = icu_decimal_data::impl_decimal_symbols_v1;
                icu_plurals::provider::PluralsCardinalV1 = icu_plurals_data::impl_plurals_cardinal_v1;
                icu_plurals::provider::PluralsOrdinalV1 = icu_plurals_data::impl_plurals_ordinal_v1;
                icu_list::provider::ListAndV1 = icu_list_data::impl_list_and_v1;
                icu_list::provider::ListOrV1 = icu_list_data::impl_list_or_v1;
                icu_list::provider::ListUnitV1 = icu_list_data::impl_list_unit_v1;
                icu_datetime::provider::names::DatetimeNamesDayperiodV1 = icu_datetime_data::impl_datetime_names_dayperiod_v1;
                icu_datetime::provider::names::DatetimeNamesMonthGregorianV1 = icu_datetime_data::impl_datetime_names_month_gregorian_v1;
                icu_datetime::provider::names::DatetimeNamesWeekdayV1 = icu_datetime_data::impl_datetime_names_weekday_v1;
                icu_datetime::provider::names::DatetimeNamesYearGregorianV1 = icu_datetime_data::impl_datetime_names_year_gregorian_v1;
                icu_datetime::provider::semantic_skeletons::DatetimePatternsDateGregorianV1 = icu_datetime_data::impl_datetime_patterns_date_gregorian_v1;
                icu_datetime::provider::semantic_skeletons::DatetimePatternsGlueV1 = icu_datetime_data::impl_datetime_patterns_glue_v1;
                icu_datetime::provider::semantic_skeletons::DatetimePatternsTimeV1 = icu_datetime_data::impl_datetime_patterns_time_v1;
                icu_datetime::provider::time_zones::TimezoneNamesCitiesOverrideV1 = icu_datetime_data::impl_timezone_names_cities_override_v1;
                icu_datetime::provider::time_zones::TimezoneNamesCitiesRootV1 = icu_datetime_data::impl_timezone_names_cities_root_v1;
                icu_datetime::provider::time_zones::TimezoneNamesEssentialsV1 = icu_datetime_data::impl_timezone_names_essentials_v1;
                icu_datetime::provider::time_zones::TimezoneNamesGenericLongV1 = icu_datetime_data::impl_timezone_names_generic_long_v1;
                icu_datetime::provider::time_zones::TimezoneNamesGenericShortV1 = icu_datetime_data::impl_timezone_names_generic_short_v1;
                icu_datetime::provider::time_zones::TimezoneNamesLocationsOverrideV1 = icu_datetime_data::impl_timezone_names_locations_override_v1;
                icu_datetime::provider::time_zones::TimezoneNamesLocationsRootV1 = icu_datetime_data::impl_timezone_names_locations_root_v1;
                icu_datetime::provider::time_zones::TimezoneNamesSpecificLongV1 = icu_datetime_data::impl_timezone_names_specific_long_v1;
                icu_datetime::provider::time_zones::TimezoneNamesSpecificShortV1 = icu_datetime_data::impl_timezone_names_specific_short_v1;
                icu_datetime::provider::time_zones::TimezoneNamesStandardLongV1 = icu_datetime_data::impl_timezone_names_standard_long_v1;
                icu_experimental::dimension::provider::currency::essentials::CurrencyEssentialsV1 = icu_experimental_data::impl_currency_essentials_v1;
                icu_experimental::dimension::provider::currency::extended::CurrencyExtendedDataV1 = icu_experimental_data::impl_currency_extended_data_v1;
                icu_experimental::dimension::provider::currency::patterns::CurrencyPatternsDataV1 = icu_experimental_data::impl_currency_patterns_data_v1;
                icu_experimental::displaynames::provider::LanguageDisplayNamesV1 = icu_experimental_data::impl_language_display_names_v1;
                icu_experimental::displaynames::provider::LocaleDisplayNamesV1 = icu_experimental_data::impl_locale_display_names_v1;
                icu_experimental::dimension::provider::percent::PercentEssentialsV1 = icu_experimental_data::impl_percent_essentials_v1;
                icu_experimental::displaynames::provider::RegionDisplayNamesV1 = icu_experimental_data::impl_region_display_names_v1;
                icu_experimental::displaynames::provider::ScriptDisplayNamesV1 = icu_experimental_data::impl_script_display_names_v1;
                icu_experimental::displaynames::provider::VariantDisplayNamesV1 = icu_experimental_data::impl_variant_display_names_v1;
                icu_experimental::dimension::provider::units::display_names::UnitsDisplayNamesV1 = icu_experimental_data::impl_units_display_names_v1;
                icu_experimental::relativetime::provider::LongSecondRelativeV1 = icu_experimental_data::impl_long_second_relative_v1;
                icu_experimental::relativetime::provider::LongMinuteRelativeV1 = icu_experimental_data::impl_long_minute_relative_v1;
                icu_experimental::relativetime::provider::LongHourRelativeV1 = icu_experimental_data::impl_long_hour_relative_v1;
                icu_experimental::relativetime::provider::LongDayRelativeV1 = icu_experimental_data::impl_long_day_relative_v1;
                icu_experimental::relativetime::provider::LongWeekRelativeV1 = icu_experimental_data::impl_long_week_relative_v1;
                icu_experimental::relativetime::provider::LongMonthRelativeV1 = icu_experimental_data::impl_long_month_relative_v1;
                icu_experimental::relativetime::provider::LongQuarterRelativeV1 = icu_experimental_data::impl_long_quarter_relative_v1;
                icu_experimental::relativetime::provider::LongYearRelativeV1 = icu_experimental_data::impl_long_year_relative_v1;
                icu_experimental::relativetime::provider::ShortSecondRelativeV1 = icu_experimental_data::impl_short_second_relative_v1;
                icu_experimental::relativetime::provider::ShortMinuteRelativeV1 = icu_experimental_data::impl_short_minute_relative_v1;
                icu_experimental::relativetime::provider::ShortHourRelativeV1 = icu_experimental_data::impl_short_hour_relative_v1;
                icu_experimental::relativetime::provider::ShortDayRelativeV1 = icu_experimental_data::impl_short_day_relative_v1;
                icu_experimental::relativetime::provider::ShortWeekRelativeV1 = icu_experimental_data::impl_short_week_relative_v1;
                icu_experimental::relativetime::provider::ShortMonthRelativeV1 = icu_experimental_data::impl_short_month_relative_v1;
                icu_experimental::relativetime::provider::ShortQuarterRelativeV1 = icu_experimental_data::impl_short_quarter_relative_v1;
                icu_experimental::relativetime::provider::ShortYearRelativeV1 = icu_experimental_data::impl_short_year_relative_v1;
                icu_experimental::relativetime::provider::NarrowSecondRelativeV1 = icu_experimental_data::impl_narrow_second_relative_v1;
                icu_experimental::relativetime::provider::NarrowMinuteRelativeV1 = icu_experimental_data::impl_narrow_minute_relative_v1;
                icu_experimental::relativetime::provider::NarrowHourRelativeV1 = icu_experimental_data::impl_narrow_hour_relative_v1;
                icu_experimental::relativetime::provider::NarrowDayRelativeV1 = icu_experimental_data::impl_narrow_day_relative_v1;
                icu_experimental::relativetime::provider::NarrowWeekRelativeV1 = icu_experimental_data::impl_narrow_week_relative_v1;
                icu_experimental::relativetime::provider::NarrowMonthRelativeV1 = icu_experimental_data::impl_narrow_month_relative_v1;
                icu_experimental::relativetime::provider::NarrowQuarterRelativeV1 = icu_experimental_data::impl_narrow_quarter_relative_v1;
                icu_experimental::relativetime::provider::NarrowYearRelativeV1 = icu_experimental_data::impl_narrow_year_relative_v1;
            }
            once {
                icu_time::provider::iana::TimezoneIdentifiersIanaCoreV1 = icu_time_data::impl_timezone_identifiers_iana_core_v1;
                icu_time::provider::TimezonePeriodsV1 = icu_time_data::impl_timezone_periods_v1;
            }
        }
    };
}
pub(crate) use with_markers;
