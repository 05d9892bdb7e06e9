//! The components of dates and times, and their widths.

use super::time_zone::NameStyle;

/// How long a component of a date or time is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Numeric,
    TwoDigits,
    Short,
    Long,
    Narrow,
}

impl Width {
    pub(super) fn is_text(self) -> bool {
        !matches!(self, Self::Numeric | Self::TwoDigits)
    }

    /// The number of letters in a pattern.
    pub(super) fn letters(self) -> usize {
        match self {
            Self::Numeric => 1,
            Self::TwoDigits => 2,
            Self::Short => 3,
            Self::Long => 4,
            Self::Narrow => 5,
        }
    }
}

/// How hours are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cycle {
    /// 0 to 11.
    H11,
    /// 1 to 12.
    H12,
    /// 0 to 23.
    H23,
    /// 1 to 24.
    H24,
}

impl Cycle {
    /// Whether AM or PM is written.
    pub(super) fn has_halves(self) -> bool {
        matches!(self, Self::H11 | Self::H12)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::H11 => "h11",
            Self::H12 => "h12",
            Self::H23 => "h23",
            Self::H24 => "h24",
        }
    }
}

/// The components of a date or time that the program asks for.
#[derive(Default)]
pub(super) struct Components {
    pub(super) weekday: Option<Width>,
    pub(super) year: Option<Width>,
    pub(super) month: Option<Width>,
    pub(super) day: Option<Width>,
    pub(super) hour: Option<Width>,
    pub(super) minute: Option<Width>,
    pub(super) second: Option<Width>,
    pub(super) fraction: Option<u32>,
    pub(super) zone: Option<NameStyle>,
}

impl Components {
    pub(super) fn has_date(&self) -> bool {
        self.weekday.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    pub(super) fn has_time(&self) -> bool {
        self.hour.is_some() || self.minute.is_some() || self.second.is_some() || self.fraction.is_some()
    }

    pub(super) fn add_date(&mut self) {
        (self.year, self.month, self.day) =
            (Some(Width::Numeric), Some(Width::Numeric), Some(Width::Numeric));
    }

    pub(super) fn add_time(&mut self) {
        (self.hour, self.minute, self.second) =
            (Some(Width::Numeric), Some(Width::Numeric), Some(Width::Numeric));
    }
}
