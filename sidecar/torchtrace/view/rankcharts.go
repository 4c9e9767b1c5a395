package view

func stragglerSentence(t rowsOf) string { return "" }

func stragglerChart(t rowsOf, theme Theme) Chart { return Chart{} }

func loaderChart(t rowsOf, theme Theme) Chart { return Chart{} }
