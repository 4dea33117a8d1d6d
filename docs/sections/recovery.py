"""Sections of docs/results.md: sparse recovery."""

from sections._section import rows_of, section


def sparse() -> str:
    return _recovery(
        "sparse",
        "with l_p penalties",
        "PD is particle descent; PGD is proximal gradient, which uses the penalty's proximal "
        "operator in closed form; 'POL, then PGD' is one application and then accelerated PGD. "
        "Accelerated PGD alone reaches about the same mean, and fewer minima.",
    )


def measurements() -> str:
    return _recovery(
        "measurements",
        "from measurements never seen",
        "One operator serves every A and y. POL alone has not learned it in so short a training; "
        "one application of it is a better start for accelerated PGD.",
    )


def _recovery(folder: str, what: str, about: str) -> str:
    rows = rows_of(folder)
    trained = next(each for each in rows if each["measure"] == "training")
    own = [each for each in rows if each["measure"] == "objective"]
    own = [each for each in own if each["problem"] == trained["problem"]]
    lines = []
    for each in own:
        numbers = f"{each['seconds']:.2g} | {each['mean']:.3f} | {each['distinct']:.1f}"
        lines.append(
            f"| {each['label']} | {each['evaluations']:,} | {numbers} | {each['inside']:.0%} |"
        )
    first = own[0]
    return section(
        f"**Sparse recovery {what}** ({first['instances']} instances, {first['starts']:,} starts; "
        f"trained for {trained['trained_seconds']:.0f} s with lam = {trained['lam']:g} on one "
        f"{first['machine']}): mean objective of the solutions inside the space, and how many "
        f"distinct ones are minima. {about}",
        "| method | evaluations | seconds | mean objective | distinct minima | inside |\n"
        "|---|---:|---:|---:|---:|---:|",
        lines,
        folder,
    )
