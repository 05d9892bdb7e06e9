//! Compares texts in the order of the Unicode CLDR's root collation, which is that of English.

use std::cmp::Ordering;

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationReorderingV1,
    CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_collator::{Collator, CollatorPreferences};
use icu_normalizer::provider::{Baked as BakedNormalizer, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::{DataError, DataErrorKind, DataMarker, DataProvider, DataRequest, DataResponse};

use super::options::{IntlError, Options};

/// The data of the root collation. The data of other languages is several times as large, and no part of the program.
struct RootData;

macro_rules! root_data {
    ($($marker:ty: $data:expr),*) => {
        $(impl DataProvider<$marker> for RootData {
            fn load(&self, _: DataRequest) -> Result<DataResponse<$marker>, DataError> {
                $data.load(DataRequest::default())
            }
        })*
    };
}

root_data!(
    CollationRootV1: Baked,
    CollationDiacriticsV1: Baked,
    CollationJamoV1: Baked,
    CollationMetadataV1: Baked,
    CollationSpecialPrimariesV1: Baked,
    NormalizerNfdDataV1: BakedNormalizer,
    NormalizerNfdTablesV1: BakedNormalizer
);

impl DataProvider<CollationTailoringV1> for RootData {
    fn load(&self, _: DataRequest) -> Result<DataResponse<CollationTailoringV1>, DataError> {
        Err(DataErrorKind::MarkerNotFound.with_marker(CollationTailoringV1::INFO))
    }
}

impl DataProvider<CollationReorderingV1> for RootData {
    fn load(&self, _: DataRequest) -> Result<DataResponse<CollationReorderingV1>, DataError> {
        Err(DataErrorKind::MarkerNotFound.with_marker(CollationReorderingV1::INFO))
    }
}

/// An order of texts.
pub(super) struct Collation {
    collator: Collator,
    /// The members of `resolvedOptions()`.
    pub(super) resolved: Vec<(&'static str, String)>,
}

impl Collation {
    /// Reads the options of `Intl.Collator` and `localeCompare`.
    ///
    /// # Errors
    /// An option is invalid or not supported.
    pub(super) fn read(options: &Options<'_>, tag: &str) -> Result<Self, IntlError> {
        options.only("usage", "sort")?;
        options.only("collation", "default")?;
        let sensitivities = [
            ("variant", (Strength::Tertiary, CaseLevel::Off)),
            ("base", (Strength::Primary, CaseLevel::Off)),
            ("accent", (Strength::Secondary, CaseLevel::Off)),
            ("case", (Strength::Primary, CaseLevel::On)),
        ];
        let (sensitivity, (strength, case_level)) =
            options.choice("sensitivity", &sensitivities)?.unwrap_or(sensitivities[0]);
        let booleans = [("false", false), ("true", true)];
        let (punctuation, ignores_punctuation) =
            options.choice("ignorePunctuation", &booleans)?.unwrap_or(booleans[0]);
        let (numeric, is_numeric) = options.choice("numeric", &booleans)?.unwrap_or(booleans[0]);
        let cases = [
            ("false", CollationCaseFirst::False),
            ("upper", CollationCaseFirst::Upper),
            ("lower", CollationCaseFirst::Lower),
        ];
        let (case, case_first) = options.choice("caseFirst", &cases)?.unwrap_or(cases[0]);
        let mut collator = CollatorOptions::default();
        (collator.strength, collator.case_level) = (Some(strength), Some(case_level));
        collator.alternate_handling = ignores_punctuation.then_some(AlternateHandling::Shifted);
        let mut preferences = CollatorPreferences::default();
        preferences.case_first = Some(case_first);
        preferences.numeric_ordering = is_numeric.then_some(CollationNumericOrdering::True);
        let collator = Collator::try_new_unstable(&RootData, preferences, collator)
            .map_err(|error| IntlError::Range(format!("no collation for {tag}: {error}")))?;
        let resolved = vec![
            ("locale", tag.to_owned()),
            ("usage", "sort".to_owned()),
            ("sensitivity", sensitivity.to_owned()),
            ("ignorePunctuation", punctuation.to_owned()),
            ("collation", "default".to_owned()),
            ("numeric", numeric.to_owned()),
            ("caseFirst", case.to_owned()),
        ];
        Ok(Self { collator, resolved })
    }

    pub(super) fn compare(&self, left: &str, right: &str) -> Ordering {
        self.collator.as_borrowed().compare(left, right)
    }
}
