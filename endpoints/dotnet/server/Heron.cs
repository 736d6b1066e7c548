using System;
using System.Globalization;

namespace Wirelab.Server
{
    /// <summary>The square root of the feature `heron`, as the contract defines it.</summary>
    static class Heron
    {
        /// <summary>The root of the number in a text, as text; null if it has none.</summary>
        public static string Answer(string text)
        {
            const NumberStyles style = NumberStyles.AllowLeadingSign | NumberStyles.AllowDecimalPoint | NumberStyles.AllowExponent;
            var isNumber = double.TryParse(text, style, CultureInfo.InvariantCulture, out var number);
            return isNumber && number >= 0 && !double.IsInfinity(number)
                ? Root(number).ToString("F12", CultureInfo.InvariantCulture)
                : null;
        }

        static double Root(double number)
        {
            if (number == 0)
            {
                return 0;
            }
            // Never below the root, from where each mean falls towards it until rounding keeps it from falling.
            for (var guess = Math.Max(number, 1); ;)
            {
                var mean = (guess + number / guess) / 2;
                if (mean >= guess)
                {
                    return guess;
                }
                guess = mean;
            }
        }
    }
}
