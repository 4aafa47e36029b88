//! Tests that figures of unusual data are valid, and that nothing in the figures overlaps.

use super::*;

#[test]
fn empty_and_non_finite_data_give_a_valid_figure() {
    for points in [
        vec![],
        vec![(1.0, 1.0)],
        vec![(0.0, 0.0), (f64::NAN, 3.0)],
        vec![(1.0, f64::INFINITY), (2.0, -1.0)],
        vec![(1.0, 1e300), (2.0, -1e300)],
        vec![(1.0, 1e-300), (1e300, 5.0)],
    ] {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let line = Line {
                name: "<a & b>".into(),
                points: points.clone(),
                errors: vec![f64::NAN; points.len()],
                ..Line::default()
            };
            let lines = Lines {
                title: "x < y".into(),
                lines: vec![line],
                x_scale: scale,
                y_scale: scale,
                ..Lines::default()
            };
            check(&lines.draw().with_note("one & two"));
        }
    }
    let marks = [("a", 0.0), ("b", f64::NAN)].map(|(name, value)| {
        let (whiskers, quartiles) = (Some((value, value)), Some((value, value, value)));
        let shape = Shape { whiskers, quartiles, dot: Some(2.0), ..Shape::default() };
        Mark { category: name.into(), shape, ..Mark::default() }
    });
    check(&Marks { scale: Scale::Logarithmic, marks: marks.into(), ..Marks::default() }.draw());
    let groups = [("a".into(), vec![1.0, f64::NAN]), ("b".into(), vec![])];
    check(&draw_groups("d", "%", &["x", "y"], &groups));
    check(&draw_groups("d", "%", &[], &[]));
    check(&draw_spreads("s", "µs", Scale::Linear, &[("a".into(), vec![])]));
}

#[test]
fn published_lines_and_published_means_are_dashed() {
    let line = |dashed| Line { points: vec![(1.0, 1.0), (2.0, 2.0)], dashed, ..Line::default() };
    let svg = |dashed| {
        let name = "weir".to_owned();
        Lines { lines: vec![Line { name, ..line(dashed) }], ..Lines::default() }.svg()
    };
    // The style is in the line and in the legend.
    assert_eq!([true, false].map(|it| svg(it).matches("stroke-dasharray").count()), [2, 0]);
    let shape = Shape { dot: Some(3.0), ..Shape::default() };
    let published = Mark { variant: "published".into(), shape, ..Mark::default() };
    let only_a_mean = Marks { marks: vec![published], ..Marks::default() }.draw().svg();
    assert_eq!(only_a_mean.matches("stroke-dasharray").count(), 1);
    // The only rectangle is the background.
    assert_eq!(only_a_mean.matches("<rect").count(), 1);
}

#[test]
fn a_system_has_the_same_colour_in_all_figures_of_a_report() {
    let line = |name: &str| Line {
        name: name.into(),
        points: vec![(1.0, 1.0), (2.0, 1.0)],
        ..Line::default()
    };
    let figure = |names: &[&str]| {
        Lines { lines: names.iter().map(|name| line(name)).collect(), ..Lines::default() }.draw()
    };
    let (one, two) = (figure(&["a", "b"]), figure(&["b, published", "c"]));
    let palette = palette_of([&one, &two]);
    let colour = |drawing: &Drawing, system: &str| {
        let svg = drawing.svg_in(WIDE, &palette);
        let mark = format!("data-system=\"{system}\"");
        let path = svg.split("<path").find(|part| part.contains(&mark)).unwrap().to_owned();
        path.split("stroke=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!(colour(&one, "b"), colour(&two, "b"));
    assert_ne!(colour(&one, "a"), colour(&two, "c"));
}

#[test]
fn many_lines_are_divided_into_a_limited_number_of_panels() {
    let line = |index: usize| Line {
        name: format!("system {}", index / 2),
        variant: ["AGG", "ND"].get(index % 2).unwrap().to_string(),
        points: vec![(1.0, index as f64), (2.0, 1.0)],
        ..Line::default()
    };
    let panels = |count: usize| {
        let lines = Lines { lines: (0..count).map(line).collect(), ..Lines::default() };
        lines.svg().matches("font-weight=\"bold\"").count()
    };
    assert_eq!([8, 16, 40].map(panels), [0, 2, 20], "by variant, then by system");
    // With 60 systems in 34 cases each, the figure has the first panels and a note.
    let many = Lines { lines: (0..2_000).map(line).collect(), ..Lines::default() };
    let svg = many.svg();
    assert!(svg.contains("more panels are not drawn"));
    assert!(svg.len() < 300_000, "{}", svg.len());
}

#[test]
fn the_x_axis_begins_at_zero_if_requested() {
    let line = Line { points: vec![(5.0, 1.0), (10.0, 1.0)], ..Line::default() };
    let first = |x_from_zero| {
        let svg = Lines { lines: vec![line.clone()], x_from_zero, ..Lines::default() }.svg();
        let place = svg.split("<circle cx=\"").nth(1).and_then(|it| it.split('"').next());
        place.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0)
    };
    assert!(first(false) < 80.0 && first(true) > 250.0, "{} {}", first(false), first(true));
}

#[test]
fn box_plots_are_vertical_if_the_names_fit_and_horizontal_otherwise() {
    let high = |count: usize, name: &str| {
        let marks = (0..count).map(|index| box_of(&format!("{name} {index}"))).collect();
        let svg = Marks { marks, ..Marks::default() }.draw().svg();
        let size = svg.split("viewBox=\"0 0 720 ").nth(1).and_then(|it| it.split('"').next());
        size.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0)
    };
    assert!(high(3, "weir") > 300.0, "three stand");
    assert!((100.0..300.0).contains(&high(3, &"a long name ".repeat(4))), "they lie");
    assert!(high(60, "weir") > 60.0 * 15.0, "each has a row");
}

#[test]
fn a_drawing_is_written_to_json_and_read_back_without_change() {
    let lines = Lines {
        title: "t".into(),
        lines: vec![Line { points: vec![(1.0, f64::NAN), (2.0, 3.0)], ..Line::default() }],
        ..Lines::default()
    };
    let drawings = [
        lines.draw().with_note("n"),
        draw_groups("d", "%", &["x"], &[("a".into(), vec![f64::NAN, 1.0])]),
        HeatMap { cells: vec![Some(1.0), None, Some(f64::NAN)], ..HeatMap::default() }.draw(),
    ];
    for drawing in drawings {
        let text = serde_json::to_string(&drawing).unwrap();
        assert_eq!(serde_json::from_str::<Drawing>(&text).unwrap(), drawing, "{text}");
    }
}

/// A box with whiskers, quartiles and a median.
pub(super) fn box_of(name: &str) -> Mark {
    let (whiskers, quartiles) = (Some((1.0, 5.0)), Some((2.0, 3.0, 4.0)));
    let shape = Shape { whiskers, quartiles, ..Shape::default() };
    Mark { category: name.into(), system: name.into(), shape, ..Mark::default() }
}

/// Checks, on a wide page and on a phone, that all tags are closed in the right order and all numbers are finite.
fn check(drawing: &Drawing) {
    for width in [WIDE, NARROW] {
        let svg = drawing.svg_in(width, &palette_of([drawing]));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1).map(|part| part.split('>').next().unwrap()) {
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "{svg}");
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
    assert!(!drawing.says().is_empty() && !drawing.csv().is_empty());
}
