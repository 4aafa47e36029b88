//! Figures as SVG text: lines (also CDFs), boxes and strips. Self-contained, no script, no font file.
