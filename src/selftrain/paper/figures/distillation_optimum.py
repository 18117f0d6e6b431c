r"""Self-distillation with the squared loss and up to six fits, each ridge tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import OPTIMUM
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed
from ..ruling import Bar, Judged, at_full_size, below, everywhere, positive

if TYPE_CHECKING:
    import xarray as xr

RHO, DELTA, NOISE = 0.5, 0.5, 0.3
ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ALPHAS_QUICK = (0.1, 1.0, 100.0)
MOST, MOST_QUICK = 6, 2
LARGE = 10.0
HALF = Bar(0.5, "a gain that is half as large is clearly smaller")
ROUNDING = Bar(1e-5, "what a fit with the smallest ridge of the range changes")
CLOSE = Bar(0.02, "a fiftieth of the error")


def tasks(quick: bool) -> Tasks:
    most = MOST_QUICK if quick else MOST
    fixed = {"rho": RHO, "delta": DELTA, "label_noise": NOISE, "most": most}
    return {"optimum": Task(OPTIMUM, Grid({"alpha_l": ALPHAS_QUICK if quick else ALPHAS}, fixed))}


def draw(data: Data) -> Drawn:
    found = data["optimum"]
    figure, axes = pic.canvas(1, 2, 8.6, 3.0, r"$\alpha$", r"error  $\epsilon_g$", sharex=True)
    first = found["error"].sel(fits=1)
    colors = dict(zip(found.fits.values.tolist(), pic.SERIES, strict=False))
    for fits, color in colors.items():
        error = found["error"].sel(fits=fits)
        pic.series(axes[0, 0], found.alpha_l, error, color)
        if fits > 1:
            pic.series(axes[0, 1], found.alpha_l, 1 - error / first, color)
    pic.reference(axes[0, 0], found.alpha_l, found["bayes"])
    for ax in axes[0]:
        ax.set_xscale("log")
    axes[0, 1].set_ylabel("gain over one fit")
    return figure, [
        *(
            pic.handle(f"{fits} fit{'s' if fits > 1 else ''}", color, "o")
            for fits, color in colors.items()
        ),
        pic.handle("Bayes error", style.GREY, "", pic.DOTTED),
    ]


def moderate(key: str, found: str, gain: xr.DataArray, **about: Any) -> Judged:
    """Judge the claim that the gain is large inside the range of alpha and small at both ends."""
    largest = gain.max()
    ends = [float(gain.isel(alpha_l=end) / largest) for end in (0, -1)]
    inside = below("gain at the ends over it", max(ends), HALF)
    return at_full_size(key, found, positive("largest gain", largest), inside, **about)


def judge(data: Data) -> Claims:
    found = data["optimum"]
    error = found["error"].transpose("fits", "alpha_l")
    gain = 1 - error.isel(fits=-1) / error.sel(fits=1)
    rise = error.diff("fits").max()
    ratio = error.isel(fits=-1) / found["bayes"] - 1
    large = ratio.sel(alpha_l=ratio.alpha_l >= LARGE)
    yield moderate(
        "moderate",
        f"Gain of {error.sizes['fits']} fits by alpha: {listed(gain, '{:.1%}')}.",
        gain,
    )
    yield everywhere(
        "more",
        f"The largest change from one number of fits to the next is {float(rise):.1e}.",
        below("largest rise of the error", rise, ROUNDING),
    )
    yield at_full_size(
        "bayes",
        f"Excess over the Bayes error by alpha: {listed(ratio, '{:.1%}')}.",
        below("largest excess", large.max(), CLOSE),
    )
